"""Pods are marked by what they have to do: costs before a scale-down, protection while they load or are busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from scaler.cluster.model import Phase, Pod, ScaledObject
from scaler.cluster.pod_marks import AUTOSCALER, DELETION_COST, KARPENTER
from scaler.exposition.sample import Sample
from scaler.serving.removal import Removal
from scaler.sources.source import Unknown
from scaler.targets import Target
from tests.unit.targets.world import SIMPLE, Scene, page, pod, scaled_object

BUSY = {KARPENTER: "true", AUTOSCALER: "false"}


@dataclass
class Marker:
    """Keeps the marks that pods were given."""

    errors: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Mapping[str, str]] = field(default_factory=dict)
    writes: int = 0
    """How often a pod's marks became others."""

    def mark(self, namespace: str, pod: Pod, wanted: Mapping[str, str]) -> None:
        self.writes += dict(wanted) != self.marks.get(pod.name, {})
        self.marks[pod.name] = dict(wanted)

    def costs(self) -> dict[str, int]:
        return {name: int(marks[DELETION_COST]) for name, marks in self.marks.items() if DELETION_COST in marks}


class Stage:
    """Pods of a ReplicaSet, and what becomes of them."""

    def __init__(self, *pods: Pod, idle_first: bool = True, protect_busy: bool = False, leads: bool = True) -> None:
        self.scene = Scene(pods=[replace(each, controller=each.controller or "ReplicaSet") for each in pods])
        self.marker = Marker()
        self.removal = Removal(self.marker, lambda: leads, idle_first=idle_first, protect_busy=protect_busy)
        self.scene.everywhere(page())
        self.target: Target | None = None

    def begin(self, **metadata: str) -> Target:
        keys = {**SIMPLE, "downscaleDelay": "120s", **metadata}
        self.target = self.scene.target(keys, observers=[self.removal.note])
        return self.target

    async def passes(self, seconds: int, **pages: Sample | Unknown) -> None:
        """Let so many ticks pass with these pages."""
        self.scene.pages |= pages
        await self.scene.tick(self.target or self.begin(), seconds)


def pods(*names: str) -> list[Pod]:
    return [pod(name) for name in names]


FULL = page(running=10)


async def test_costs_are_written_only_when_a_scale_down_is_near_and_follow_the_requests() -> None:
    stage = Stage(*pods("a", "b", "c", "d"))
    await stage.passes(10, a=FULL, b=FULL, c=FULL, d=FULL)
    await stage.passes(85, a=page(waiting=2, running=10), b=page(running=1), c=page(running=2))
    await stage.passes(1, d=page())
    assert stage.marker.costs() == {}
    await stage.passes(30)
    assert stage.marker.costs() == {"a": 4, "b": 1, "c": 2}
    assert stage.target is not None
    assert stage.target.answer() == 4.0
    await stage.passes(60)
    assert stage.target.answer() < 4.0
    assert stage.marker.costs() == {"a": 4, "b": 1, "c": 2}


async def test_costs_go_when_the_scale_down_is_no_longer_near() -> None:
    stage = Stage(*pods("a", "b", "c"))
    await stage.passes(100, a=FULL)
    await stage.passes(10)
    assert stage.marker.costs() == {"a": 4}
    await stage.passes(100, b=FULL, c=FULL)
    assert stage.marker.costs() == {}


async def test_a_load_that_comes_and_goes_is_written_seldom() -> None:
    stage = Stage(*pods("a", "b", "c"))
    await stage.passes(100, a=FULL)
    before = stage.marker.writes
    for second in range(40):
        await stage.passes(1, a=page(running=10 - second % 2), b=page(running=second % 2))
    assert stage.marker.costs() == {"a": 4, "b": 1}
    assert stage.marker.writes - before <= 2


async def test_an_unknown_pod_is_not_an_idle_pod() -> None:
    stage = Stage(*pods("a", "b", "c"))
    stage.scene.requested = 5  # somebody else holds the count up
    await stage.passes(130)
    stage.scene.requested = None
    await stage.passes(1, a=FULL, b=Unknown("timed out"))
    costs = stage.marker.costs()
    assert costs["b"] > costs["a"] > 0
    assert "c" not in costs


async def test_only_pods_of_replica_sets_get_a_cost() -> None:
    stage = Stage(replace(pod("a"), controller="StatefulSet"), *pods("b", "c"))
    await stage.passes(100, a=FULL, b=FULL)
    await stage.passes(10)
    assert set(stage.marker.costs()) == {"b"}


async def test_at_the_minimum_no_scale_down_is_near() -> None:
    stage = Stage(*pods("a"))
    await stage.passes(200, a=page(running=1))
    assert stage.marker.writes == 0


@pytest.mark.parametrize(
    ("metadata", "marked"),
    [({"downscaleDelay": "0"}, True), ({"delayMode": "consecutive"}, True), ({"downscaleDelay": "10m"}, False)],
)
async def test_every_kind_of_delay_tells_when_the_fall_is_near(metadata: dict[str, str], marked: bool) -> None:
    stage = Stage(*pods("a", "b", "c"))
    stage.begin(**metadata)
    await stage.passes(115, a=FULL, b=page(running=4))
    assert bool(stage.marker.costs()) is marked


async def test_pods_that_load_or_are_busy_are_protected_and_idle_ones_are_not() -> None:
    loading = replace(pod("l", Phase.STARTING), node="gpu-1", since=Scene().clock.utc())
    stuck = replace(loading, name="s", uid="s", reason="CrashLoopBackOff: back-off 5m0s")
    pending = pod("p", Phase.UNSCHEDULABLE)
    leaving = pod("t", Phase.TERMINATING)
    stage = Stage(*pods("a", "b", "u"), loading, stuck, pending, leaving, idle_first=False, protect_busy=True)
    await stage.passes(1, a=page(running=1), u=Unknown("timed out"))
    assert stage.marker.marks == {"a": BUSY, "u": BUSY, "l": BUSY, "b": {}, "s": {}, "p": {}}


async def test_protection_ends_after_a_minute_of_idleness_and_for_a_pod_that_never_becomes_ready() -> None:
    loading = replace(pod("l", Phase.STARTING), node="gpu-1", since=Scene().clock.utc())
    stage = Stage(*pods("a"), loading, idle_first=False, protect_busy=True)
    await stage.passes(1, a=page(running=1))
    await stage.passes(59, a=page())
    assert stage.marker.marks == {"a": BUSY, "l": BUSY}
    await stage.passes(2)
    assert stage.marker.marks == {"a": {}, "l": BUSY}
    stage.scene.clock.now += 3600
    await stage.passes(1)
    assert stage.marker.marks == {"a": {}, "l": {}}


async def test_a_pod_that_has_just_become_ready_has_a_minute_to_get_its_first_request() -> None:
    loading = replace(pod("l", Phase.STARTING), node="gpu-1", since=Scene().clock.utc())
    stage = Stage(loading, idle_first=False, protect_busy=True)
    await stage.passes(10)
    stage.scene.pods = [pod("l")]
    await stage.passes(50)
    assert stage.marker.marks == {"l": BUSY}
    await stage.passes(15)
    assert stage.marker.marks == {"l": {}}


async def test_who_does_not_lead_marks_nothing() -> None:
    stage = Stage(*pods("a", "b"), protect_busy=True, leads=False)
    await stage.passes(5, a=FULL)
    assert stage.marker.marks == {}


async def test_what_keeps_pods_from_being_marked_is_a_warning_of_the_target() -> None:
    stage = Stage(*pods("a"))
    stage.marker.errors["ns"] = "pods are not marked: the scaler may not patch pods"
    await stage.passes(1)
    assert stage.target is not None
    assert stage.marker.errors["ns"] in stage.target.warnings


async def test_two_triggers_of_a_scaled_object_do_not_undo_each_others_marks() -> None:
    stage = Stage(*pods("a", "b", "c"))
    keys = {**SIMPLE, "downscaleDelay": "120s"}
    targets = stage.scene.targets()
    targets.world.observers.append(stage.removal.note)
    near, far = (targets.find("ns", "llama", {**keys, **more}) for more in ({}, {"downscaleDelay": "10m"}))
    stage.scene.pages["a"] = FULL
    for _ in range(110):
        await near.tick()
        await stage.scene.tick(far)
    assert stage.marker.costs() == {"a": 4}
    assert stage.marker.writes == 1


async def test_what_was_remembered_of_a_scaled_object_goes_with_it() -> None:
    stage = Stage(*pods("a", "b", "c"))
    await stage.passes(110, a=FULL)
    shown: list[ScaledObject] = [scaled_object(SIMPLE)]
    stage.removal.show(shown)
    await stage.passes(1)
    assert stage.marker.costs() == {"a": 4}
    stage.removal.show([])
    assert stage.removal._memories == {}
