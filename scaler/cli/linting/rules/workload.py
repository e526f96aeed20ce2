"""Rules about the scale target, and about its own manifest where that is among the input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifest, Manifests, Step
from scaler.cli.linting.rule import error, warning
from scaler.cli.linting.scaled_object import ScaledObject
from scaler.quoting import quoted

WITHOUT_SCALE = {"RayCluster", "RayService", "RayJob", "RayCronJob"}

POD_TEMPLATES: dict[str, tuple[Step, ...]] = {
    "Deployment": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
    # The leader serves; where it has no template of its own it is made from the workers'.
    "LeaderWorkerSet": ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
}
WORKERS = ("spec", "leaderWorkerTemplate", "workerTemplate", "spec")

_SHUTDOWN_TIMEOUT = re.compile(r"(?<!\S)--shutdown-timeout[=\s]+(\d+)(?!\S)")

DEFAULT_GRACE_S = 30
"""Kubernetes' terminationGracePeriodSeconds."""


@error
def no_scale_subresource(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """KubeRay's resources have no /scale, so neither KEDA nor an HPA can move them."""
    group, kind, _name = so.target
    if group == "ray.io" and kind in WITHOUT_SCALE:
        yield Flaw(
            so.place("spec", "scaleTargetRef", "kind"),
            f"{kind} cannot be a scale target",
            f"a RayWorkerGroup that names the {kind} (docs/ray.md), or what has a /scale of its own",
        )


@error
def one_scaler_per_target(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """Two autoscalers on one target pull it to and fro; KEDA's webhook refuses the second."""
    for other in manifests.scalers(so.manifest.namespace, so.target):
        if other.kind == "HorizontalPodAutoscaler" or other.place() < so.manifest.place():
            yield Flaw(
                so.place("spec", "scaleTargetRef"),
                f"{other.kind} {other.name} ({other.place()}) scales {so.target[1]} {so.target[2]} as well",
                "one of the two",
            )
            break  # one is enough to be wrong


@warning
def replicas_in_manifest(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """Every apply of a manifest with `replicas` puts the count back to that number, under load or not."""
    for workload in _workloads(so, manifests):
        if workload.get("spec", "replicas") is not None:
            yield Flaw(
                workload.place("spec", "replicas"),
                f"{workload.kind} {workload.name} sets replicas: {quoted(workload.get('spec', 'replicas'))}",
                "no replicas in the manifest; minReplicaCount in the ScaledObject",
            )


@warning
def readiness_probe(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """Without a readiness probe a pod counts as ready while it still loads its model: it is sent requests, and no
    longer counts as on its way.
    """
    for workload, path, pod in _pods(so, manifests):
        if not any(container.get("readinessProbe") for container in _containers(pod)):
            yield Flaw(
                workload.place(*path, "containers"),
                f"{workload.kind} {workload.name} has no readinessProbe",
                "readinessProbe: {httpGet: {path: /health, port: 8000}} for vLLM",
            )


@warning
def drain(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """A replica that is taken away gets SIGTERM, and vLLM then drops every request in flight unless it is told to
    wait for them.
    """
    for workload, path, pod in _pods(so, manifests):
        containers = _containers(pod)
        if _shutdown_timeout(containers) is None and not any(_pre_stop(container) for container in containers):
            yield Flaw(
                workload.place(*path, "containers"),
                f"{workload.kind} {workload.name} has neither --shutdown-timeout nor a preStop hook",
                "--shutdown-timeout=120 among vLLM's arguments (vLLM 0.18 or newer), preStop: {sleep: {seconds: 15}}, "
                "and terminationGracePeriodSeconds above their sum",
            )


@warning
def grace_period(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """When the grace period is over the kubelet kills the pod, and the requests that it was finishing."""
    for workload, path, pod in _pods(so, manifests):
        grace = pod.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        containers = _containers(pod)
        needed = (_shutdown_timeout(containers) or 0) + max(map(_sleep, containers), default=0.0)
        if isinstance(grace, int) and needed and grace <= needed:
            yield Flaw(
                workload.place(*path, "terminationGracePeriodSeconds"),
                f"{workload.kind} {workload.name} is killed after {grace} s, and may need {needed:g} s to drain",
                f"terminationGracePeriodSeconds: {needed + 15:g} or more",
            )


def _workloads(so: ScaledObject, manifests: Manifests) -> Iterator[Manifest]:
    return iter(manifests.named(so.manifest.namespace, so.target))


def _pods(so: ScaledObject, manifests: Manifests) -> Iterator[tuple[Manifest, tuple[Step, ...], dict[str, Any]]]:
    for workload in _workloads(so, manifests):
        if workload.kind not in POD_TEMPLATES:
            continue
        for path in (POD_TEMPLATES[workload.kind], WORKERS):
            pod = workload.get(*path)
            if isinstance(pod, dict):
                yield workload, path, pod
                break


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [container for container in _list(pod.get("containers")) if isinstance(container, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _shutdown_timeout(containers: list[dict[str, Any]]) -> float | None:
    """Return the seconds of vLLM's --shutdown-timeout, None where it is not given or 0, which drops requests."""
    for container in containers:
        words = [word for key in ("command", "args") for word in _list(container.get(key)) if isinstance(word, str)]
        if match := _SHUTDOWN_TIMEOUT.search(" ".join(words)):
            return float(match[1]) or None
    return None


def _pre_stop(container: dict[str, Any]) -> Any:
    lifecycle = container.get("lifecycle")
    return lifecycle.get("preStop") if isinstance(lifecycle, dict) else None


def _sleep(container: dict[str, Any]) -> float:
    """Return the seconds of a preStop hook of kind sleep; others last as long as they last."""
    hook = _pre_stop(container)
    seconds = hook["sleep"].get("seconds") if isinstance(hook, dict) and isinstance(hook.get("sleep"), dict) else 0
    return seconds if isinstance(seconds, int) else 0
