"""Which pods may go: idle ones first when the count falls, and busy ones not because a node is to be saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from scaler.cluster.model import Phase, Pod, ScaledObject, Workload
from scaler.cluster.pod_marks import AUTOSCALER, DELETION_COST, KARPENTER
from scaler.targets import Outcomes, PodRecord, Record, Target

_NEAR_S = 30.0
"""Costs are written from so long before the count may fall: the HPA then takes up to 15 s more."""
_CALM_S = 60.0
"""They are taken back when for so long no fall was near."""
_RECENT_S = 10.0
"""A pod's cost is the highest of so many seconds, so that few writes follow a load that comes and goes."""
_IDLE_S = 60.0
"""For so long a pod has nothing to do before its node may be taken away."""
_LOADS_S = 3600.0
"""A pod that loads for longer is stuck, and nobody should pay for its node because of it."""
_UNKNOWN = 100
"""The cost of a pod that cannot be read: it is not an idle pod."""


class Marker(Protocol):
    """Who writes marks down, and sees to it that they are few."""

    @property
    def errors(self) -> Mapping[str, str]:
        """By namespace, why nothing may be written there."""
        ...

    def mark(self, namespace: str, pod: Pod, wanted: Mapping[str, str]) -> None:
        """Have a pod carry these marks of ours, and no others. Does not wait."""
        ...


@dataclass(slots=True)
class _Work:
    """What is remembered of a pod."""

    cost: int = 0
    cost_at: float = -math.inf
    busy_at: float = -math.inf
    """When it last loaded or had a request."""


@dataclass(slots=True)
class _Memory:
    """What is remembered of a ScaledObject; several triggers of it share their pods."""

    near_at: float = -math.inf
    pods: dict[str, _Work] = field(default_factory=dict)


class Removal:
    """Marks pods by what they have to do, while `leads` says so; an observer of the targets' world.

    `idle_first` tells ReplicaSets which pods to take. A pod's deletion cost is the order of magnitude of the requests
    in it (none, 1, 2 to 3, 4 to 7, …), so that it seldom changes, and it is written only when a scale-down is near: one
    that no downscale delay announces may be faster. `protect_busy` keeps node autoscalers from taking nodes whose pods
    load or have requests.
    """

    def __init__(self, marker: Marker, leads: Callable[[], bool], *, idle_first: bool, protect_busy: bool) -> None:
        self._marker = marker
        self._leads = leads
        self._idle_first = idle_first
        self._protect_busy = protect_busy
        self._memories: dict[tuple[str, str], _Memory] = {}

    def show(self, scaled_objects: Iterable[ScaledObject]) -> None:
        """Take in the ScaledObjects that name this scaler, all of them, and forget the others."""
        shown = {(each.namespace, each.name) for each in scaled_objects}
        self._memories = {key: memory for key, memory in self._memories.items() if key in shown}

    def note(self, target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:  # noqa: ARG002
        """Mark the pods as the tick has seen them."""
        leads = self._leads()
        target.unmarked = self._marker.errors.get(target.namespace, "") if leads else ""
        if not leads or target.settings.endpoints is not None:  # addresses are no objects that could carry a mark
            return
        memory = self._memories.setdefault((target.namespace, target.name), _Memory())
        now, decision = record.observation.time, record.decision
        falls_in_s = 0.0 if decision.desired < workload.requested else decision.falls_in_s
        if falls_in_s is not None and falls_in_s <= _NEAR_S and not workload.paused:
            memory.near_at = now
        near = now - memory.near_at < _CALM_S
        seen = zip(workload.pods, record.pods, strict=True)
        staying = [(pod, reading) for pod, reading in seen if pod.phase is not Phase.TERMINATING]
        memory.pods = {pod.uid: memory.pods.get(pod.uid, _Work()) for pod, _ in staying}
        for pod, reading in staying:
            work, wanted = memory.pods[pod.uid], {}
            _see(work, pod, reading, record)
            if self._idle_first and near and pod.controller == "ReplicaSet" and work.cost:
                wanted[DELETION_COST] = str(work.cost)
            if self._protect_busy and now - work.busy_at < _IDLE_S:
                wanted |= {KARPENTER: "true", AUTOSCALER: "false"}
            self._marker.mark(target.namespace, pod, wanted)


def _see(work: _Work, pod: Pod, reading: PodRecord, record: Record) -> None:
    """Remember what a pod has to do: to load, or the requests in it."""
    now = record.observation.time
    if _loads(pod, record.time):
        work.busy_at = now  # and so for as long as a pod that has become ready may wait for its first request
    if pod.phase is not Phase.READY:
        return
    if reading.waiting is None or reading.running is None:
        cost = _UNKNOWN
    else:
        cost = math.ceil(reading.waiting + reading.running).bit_length()
    if cost:
        work.busy_at = now
    if cost >= work.cost or now - work.cost_at >= _RECENT_S:
        work.cost, work.cost_at = cost, now


def _loads(pod: Pod, utc: float) -> bool:
    return pod.phase is Phase.STARTING and bool(pod.node) and not pod.reason and utc - pod.since < _LOADS_S
