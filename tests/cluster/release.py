"""A release of the chart: installed, changed and taken away by helm, and its pods run as processes."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from tests.cluster import toolchain
from tests.cluster.audit import ApiCall
from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.local_pod import LocalPod, run_pod

CHART = Path(__file__).parents[2] / "k8s" / "chart"


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource that a role grants."""

    verb: str
    group: str
    resource: str
    namespace: str
    """Empty where a ClusterRole grants it."""

    def covers(self, call: ApiCall) -> bool:
        """Whether it allows a call."""
        same = (self.verb, self.group, self.resource) == (call.verb, call.group, call.resource)
        return same and self.namespace in ("", call.namespace)


def unused(rights: Collection[Right], calls: Collection[ApiCall]) -> list[Right]:
    """The rights that no call has needed."""
    return [right for right in rights if not any(right.covers(call) for call in calls)]


def without_right(rights: Collection[Right], calls: Collection[ApiCall]) -> list[ApiCall]:
    """The calls that were not allowed, or that only other rights than these can have allowed."""
    return [call for call in calls if not call.allowed or not any(right.covers(call) for right in rights)]


class Release:
    """One release, called vllm-scaler, in a namespace of its own.

    As a context manager it stops the pods that it ran, and is uninstalled, when the block ends.
    """

    NAME = "vllm-scaler"

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self.namespace = namespace
        self._pods: list[LocalPod] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pod in self._pods:
            pod.program.stop()
            self._plane.programs.pop(pod.program.name, None)
        if self.is_installed():
            self.uninstall()

    def is_installed(self) -> bool:
        """Whether helm knows it."""
        return bool(self._plane.kubectl("get", "secrets", "-n", self.namespace, "-l", "owner=helm", "-o", "name"))

    def install(self, values: str = "{}") -> None:
        """`helm install --wait`, with values in YAML."""
        self._helm("install", self.NAME, str(CHART), "--wait", "--timeout=60s", "--values=-", stdin=values)

    def upgrade(self, values: str) -> None:
        """`helm upgrade --wait`; values that are not given are the chart's again."""
        command = ("upgrade", self.NAME, str(CHART), "--reset-values", "--wait", "--timeout=60s", "--values=-")
        self._helm(*command, stdin=values)

    def uninstall(self) -> None:
        """`helm uninstall --wait`."""
        self._helm("uninstall", self.NAME, "--wait", "--timeout=60s")

    def run(self, replica: int = 0) -> LocalPod:
        """Starts a pod of the Deployment as it is now in the cluster."""
        deployment = self._plane.get(f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.NAME}")
        assert deployment is not None
        spec = deployment["spec"]["template"]["spec"]
        pod = run_pod(self._plane, self.namespace, spec, f"{self.namespace}-{replica}")
        self._pods.append(pod)
        return pod

    def calls(self) -> list[ApiCall]:
        """What the release's ServiceAccount has asked of the API server."""
        return self._plane.calls(self.namespace, self.NAME)

    def rights(self) -> set[Right]:
        """What the release's roles grant."""
        selector = f"?labelSelector=app.kubernetes.io/instance={self.NAME}"
        api = "/apis/rbac.authorization.k8s.io/v1"
        roles = [
            role
            for kind in ("roles", "clusterroles")
            for role in (self._plane.get(f"{api}/{kind}{selector}") or {})["items"]
            if role["metadata"]["annotations"]["meta.helm.sh/release-namespace"] == self.namespace
        ]
        return {
            Right(verb, group, resource, role["metadata"].get("namespace", ""))
            for role in roles
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def _helm(self, *arguments: str, stdin: str | None = None) -> None:
        self._plane.client(toolchain.binary("helm"), *arguments, "--namespace", self.namespace, stdin=stdin)


def rendered(values: str) -> list[Manifest]:
    """The chart's objects, as they are for a release in the namespace `keda`."""
    command = [toolchain.binary("helm"), "template", "vllm-scaler", CHART, "--namespace", "keda", "-f", "-"]
    text = subprocess.run(command, input=values, capture_output=True, text=True, check=True, timeout=60).stdout
    return [manifest for manifest in yaml.safe_load_all(text) if manifest]


def objects(plane: ControlPlane) -> set[tuple[str, ...]]:
    """Everything that is in a cluster but events, as (kind, namespace, name)."""
    kinds = [
        kind
        for kind in plane.kubectl("api-resources", "--verbs=list", "--output=name").split()
        if not kind.startswith("events")
    ]
    columns = "custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name"
    text = plane.kubectl("get", ",".join(kinds), "--all-namespaces", "--no-headers", f"--output={columns}")
    return {tuple(line.split()) for line in text.splitlines() if line.strip()}
