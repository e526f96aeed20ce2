"""How long a start takes, measured on the target's own pods: asked → scheduled → running → ready.

A start is cold when it waited for a node, warm when a node took it at once. A pod that waits longer than autoscalers
give a node waits for a limit, not for a node: its start counts from when it was scheduled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from scaler.cluster.model import Pod
from scaler.policy.observation import StartUp, Took

_REMEMBERED = 32
"""Starts of each kind."""
_LAST = 4
"""Starts that tell what the next one will be."""
_AT_ONCE_S = 2.0
"""The API's times are whole seconds: a longer wait was one for a node."""
_LONGEST_NODE_S = 900.0
"""Default of the Cluster Autoscaler's `--max-node-provision-time`, and when Karpenter gives a node up."""
_LONGEST_START_S = 3600.0
"""A pod that took longer was ready before and was not seen then."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The parts of one start, in seconds; None is unknown."""

    node: float
    """The wait for a node; 0 for a warm start."""
    total: float
    image: float | None
    load: float | None


class StartUpMeter:
    """Remembers the last starts. Restarts of a container are no starts, so each pod counts once."""

    def __init__(self) -> None:
        self.start_up: StartUp | None = None
        """What was measured, None until a start was seen."""
        self._warm: deque[_Start] = deque(maxlen=_REMEMBERED)
        self._cold: deque[_Start] = deque(maxlen=_REMEMBERED)
        self._all: deque[_Start] = deque(maxlen=_REMEMBERED)
        self._counted: set[str] = set()
        """The uids of the pods whose starts were counted, as long as they are there."""
        self._pods: Iterable[Pod] | None = None

    def see(self, pods: Iterable[Pod]) -> None:
        """Take in the pods as they are now."""
        if pods is self._pods:
            return
        self._pods = pods = tuple(pods)
        ready = [(pod.ready_at, pod) for pod in pods if pod.ready_at is not None]
        new = sorted((at, pod.uid, _start(pod, at)) for at, pod in ready if pod.uid not in self._counted)
        self._counted = {pod.uid for _, pod in ready}
        starts = [start for _, _, start in new if 0 < start.total <= _LONGEST_START_S]
        for start in starts:
            self._all.append(start)
            (self._cold if start.node else self._warm).append(start)
        if starts:
            self.start_up = self._measured()

    def _measured(self) -> StartUp | None:
        last = list(self._all)
        total = Took.of(start.total for start in last)
        if total is None:
            return None
        return StartUp(
            total.median,
            total.p90,
            warm=Took.of(start.total for start in self._warm),
            cold=Took.of(start.total for start in self._cold),
            node=Took.of(start.node for start in self._cold),
            image=Took.of(start.image for start in last if start.image is not None),
            load=Took.of(start.load for start in last if start.load is not None),
            last_cold=any(start.node for start in last[-_LAST:]),
        )


def _start(pod: Pod, ready_at: float) -> _Start:
    asked, running = pod.created, pod.running_at
    scheduled = asked if pod.scheduled_at is None else pod.scheduled_at
    if scheduled - asked > _LONGEST_NODE_S:
        asked = scheduled
    known = running is not None and scheduled <= running <= ready_at
    return _Start(
        node=scheduled - asked if scheduled - asked >= _AT_ONCE_S else 0.0,
        total=ready_at - asked,
        image=running - scheduled if running is not None and known else None,
        load=ready_at - running if running is not None and known else None,
    )
