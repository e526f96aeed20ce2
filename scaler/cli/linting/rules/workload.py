"""Rules about the scale target, and about its own manifest where that is among the input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifest, Manifests, Step
from scaler.cli.linting.rule import error, hint, warning
from scaler.cli.linting.scaled_object import ScaledObject
from scaler.policy.parsing import Amount
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

_SLEEP = re.compile(r"(?<!\S)sleep\s+(\d+)(?![\w.])")

DEFAULT_GRACE_S = 30
"""Kubernetes' terminationGracePeriodSeconds."""
AUTOSCALER_GRACE_S = 600
"""Default of the Cluster Autoscaler's --max-graceful-termination-sec."""
KEEPING_NODES = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotations with which a pod keeps its node."""


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


@hint
def grace_period_cut(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """When the Cluster Autoscaler empties a node it grants pods 10 minutes at most, whatever they ask for, unless its
    --max-graceful-termination-sec says otherwise; a Karpenter NodePool has its own terminationGracePeriod.
    """
    for workload, path, pod in _pods(so, manifests):
        grace = pod.get("terminationGracePeriodSeconds")
        if isinstance(grace, int) and grace > AUTOSCALER_GRACE_S:
            yield Flaw(
                workload.place(*path, "terminationGracePeriodSeconds"),
                f"{workload.kind} {workload.name} asks for {grace} s to end",
                f"{AUTOSCALER_GRACE_S} or less, or --max-graceful-termination-sec={grace} for the Cluster Autoscaler",
            )


@hint
def kept_for_ever(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """An annotation in the template keeps the node of every pod, idle ones too, and that costs a GPU node until the pod
    is deleted.
    """
    for workload, path, _pod in _pods(so, manifests):
        place = (*path[:-1], "metadata", "annotations")
        annotations = workload.get(*place)
        for key, value in KEEPING_NODES.items():
            if isinstance(annotations, dict) and str(annotations.get(key)).lower() == value:
                yield Flaw(
                    workload.place(*place, key),
                    f"{workload.kind} {workload.name} sets {key}: {value} on all pods at all times",
                    "none in the template; `serve --protect-busy` (chart: removal.protectBusy) sets it while a pod "
                    "loads or is busy",
                )


@warning
def no_requests(so: ScaledObject, manifests: Manifests) -> Iterator[Flaw]:
    """Room on nodes (warmReplicas) is kept for what a pod requests: for one that requests nothing, none is."""
    if not any(trigger.settings and trigger.settings.warm_replicas != Amount(0) for trigger in so.triggers):
        return
    for workload, path, pod in _pods(so, manifests):
        asking = [container.get("resources") or {} for container in (*_containers(pod), pod)]
        if not any(resources.get(part) for resources in asking for part in ("requests", "limits")):
            yield Flaw(
                workload.place(*path, "containers"),
                f"{workload.kind} {workload.name} requests no resources, and the trigger asks for warmReplicas",
                "resources: {requests: {cpu: 8, memory: 64Gi}, limits: {nvidia.com/gpu: 1}} for a model on one GPU",
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
    """Return the seconds that a preStop hook sleeps, of its own kind or by a command; others last as they last."""
    hook = _pre_stop(container)
    if not isinstance(hook, dict):
        return 0
    if isinstance(hook.get("sleep"), dict):
        seconds = hook["sleep"].get("seconds")
        return seconds if isinstance(seconds, int) else 0
    words = _list(hook["exec"].get("command")) if isinstance(hook.get("exec"), dict) else []
    return sum(float(seconds) for seconds in _SLEEP.findall(" ".join(word for word in words if isinstance(word, str))))
