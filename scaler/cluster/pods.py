"""From a pod's JSON to the few things that matter about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Any, TypeVar

from scaler.cluster.client import Json
from scaler.cluster.conditions import conditions_of
from scaler.cluster.model import Phase, Pod
from scaler.cluster.pod_marks import MARKS
from scaler.cluster.times import unix

_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
_FINISHED = frozenset({"Succeeded", "Failed"})
_ON_THE_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons of a waiting container that are no trouble."""
_REASON_LENGTH = 500

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LabelledPod:
    """A pod and what selectors look at."""

    pod: Pod
    labels: Mapping[str, str]


def parse_pod(item: Json, before: LabelledPod | None) -> LabelledPod | None:
    """Return what to keep of a pod; None for one that has ended or is no replica of its own.

    Of a LeaderWorkerSet's group only the leader counts: its `/scale` counts groups.
    """
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    labels = metadata.get("labels") or {}
    if status.get("phase") in _FINISHED or labels.get(_WORKER_INDEX, "0") != "0":
        return None
    earlier = before.pod if before is not None and before.pod.uid == metadata["uid"] else None
    conditions = conditions_of(status)
    created = unix(metadata["creationTimestamp"]) or 0.0
    phase, since, reason = _phase(metadata, status, conditions, created)
    scheduled_at = _changed(conditions["PodScheduled"], created) if _is_true(conditions.get("PodScheduled")) else None
    running_at = earlier.running_at if earlier is not None else None
    if running_at is None:
        running_at = _running_since(status)
    ready_at = earlier.ready_at if earlier is not None else None
    if ready_at is None and _is_true(conditions.get("Ready")):
        ready_at = _changed(conditions["Ready"], created)
    if phase is Phase.STARTING and ready_at is not None and "Ready" in conditions:
        since = _changed(conditions["Ready"], since)
        reason = reason or "was ready and is no longer"
    pod = Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        phase=phase,
        since=since,
        created=created,
        scheduled_at=scheduled_at,
        running_at=running_at,
        ready_at=ready_at,
        ip=status.get("podIP", ""),
        host_ip=intern(status.get("hostIP", "")),
        node=intern(spec.get("nodeName", "")),
        node_selector=_shared(tuple((spec.get("nodeSelector") or {}).items())),
        ports=_shared(tuple(_named_ports(spec))),
        reason=reason[:_REASON_LENGTH],
        controller=intern(next((o["kind"] for o in metadata.get("ownerReferences") or () if o.get("controller")), "")),
        marks=_shared(tuple(_marks(metadata))),
    )
    return LabelledPod(pod, {intern(key): intern(value) for key, value in labels.items()})


def _phase(
    metadata: Mapping[str, Any], status: Mapping[str, Any], conditions: Mapping[str, Json], created: float
) -> tuple[Phase, float, str]:
    """Return the phase, since when, and why a pod that does not serve is where it is."""
    if (gone_by := unix(metadata.get("deletionTimestamp"))) is not None:  # the asking plus the grace given
        return Phase.TERMINATING, gone_by - (metadata.get("deletionGracePeriodSeconds") or 0), ""
    if _is_true(ready := conditions.get("Ready")):
        return Phase.READY, _changed(ready, created), ""
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        message = scheduled.get("message", "")
        if scheduled.get("reason") == "Unschedulable":
            return Phase.UNSCHEDULABLE, _changed(scheduled, created), message
        return Phase.STARTING, created, _words(scheduled.get("reason", ""), message)
    since = _changed(scheduled, created) if scheduled else created
    return Phase.STARTING, since, next(_trouble(status), "")


def _trouble(status: Mapping[str, Any]) -> Iterator[str]:
    """Why containers do not start, such as `CrashLoopBackOff: back-off 5m0s … (last exit: OOMKilled, code 137)`."""
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason", "") in _ON_THE_WAY:
            continue
        words = _words(waiting["reason"], waiting.get("message", ""))
        if last := (container.get("lastState") or {}).get("terminated"):
            words += f" (last exit: {last.get('reason', 'unknown')}, code {last.get('exitCode')})"
        yield words


def _running_since(status: Mapping[str, Any]) -> float | None:
    """When the last of the containers began to run; None while one does not."""
    began = [
        unix(((container.get("state") or {}).get("running") or {}).get("startedAt"))
        for container in status.get("containerStatuses") or ()
    ]
    known = [time for time in began if time is not None]
    return max(known) if known and len(known) == len(began) else None


def _words(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason


def _is_true(condition: Mapping[str, Any] | None) -> bool:
    return condition is not None and condition["status"] == "True"


def _changed(condition: Mapping[str, Any] | None, otherwise: float) -> float:
    """When a condition became what it is."""
    changed = unix(condition.get("lastTransitionTime")) if condition else None
    return otherwise if changed is None else changed


def _marks(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    annotations = metadata.get("annotations") or {}
    return ((key, annotations[key]) for key in MARKS if key in annotations)


def _named_ports(spec: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):  # a sidecar is an init container
        for port in container.get("ports") or ():
            number = port["containerPort"]
            yield port.get("name") or str(number), number


@lru_cache(maxsize=1024)
def _shared(items: tuple[tuple[str, T], ...]) -> Mapping[str, T]:
    """Pods of a workload share one mapping."""
    return MappingProxyType(dict(items))
