"""How starts are measured: their parts, the wait for a node apart, each pod once."""

from __future__ import annotations

import pytest

from scaler.cluster.model import Pod
from scaler.policy import StartUp, Took
from scaler.targets.start_up import StartUpMeter
from tests.unit.targets.world import pod


def started(name: str, asked: float = 0.0, *, node: float = 0.0, image: float = 5.0, load: float = 55.0) -> Pod:
    """A pod that has started, and how long the parts of its start took."""
    scheduled, running = asked + node, asked + node + image
    ready = running + load
    return pod(name, since=ready, created=asked, scheduled_at=scheduled, running_at=running, ready_at=ready)


def measured(*pods: Pod) -> StartUp:
    meter = StartUpMeter()
    meter.see(pods)
    assert meter.start_up is not None
    return meter.start_up


def test_before_a_start_was_seen_nothing_is_known() -> None:
    meter = StartUpMeter()
    meter.see([pod("s", ready_at=None)])
    assert meter.start_up is None


def test_a_start_is_taken_apart_and_the_wait_for_a_node_told_from_it() -> None:
    found = measured(started("warm"), started("cold", 100.0, node=120.0, image=35.0))
    assert found.warm == Took(60.0, 60.0)
    assert found.cold == Took(210.0, 210.0)
    assert found.node == Took(120.0, 120.0)
    assert found.image == Took(35.0, 35.0)
    assert found.load == Took(55.0, 55.0)
    assert (found.median, found.p90) == (210.0, 210.0)


@pytest.mark.parametrize(
    ("waited", "cold"),
    [(0.0, False), (1.0, False), (2.0, True), (120.0, True), (900.0, True)],
    ids=["at once", "within the API's second", "a quick node", "a node", "the slowest node"],
)
def test_a_pod_that_no_node_took_at_once_was_a_cold_start(waited: float, cold: bool) -> None:
    found = measured(started("a", node=waited))
    assert found.last_cold is cold
    assert (found.cold is not None, found.warm is None) == (cold, cold)


def test_a_wait_for_a_limit_is_no_wait_for_a_node() -> None:
    found = measured(started("a", node=4000.0))
    assert found.node is None
    assert found.warm == Took(60.0, 60.0)


def test_warm_starts_do_not_make_cold_ones_forgotten() -> None:
    cold = [started(f"c{i}", node=240.0) for i in range(3)]
    warm = [started(f"w{i}", 1000.0 + i) for i in range(100)]
    found = measured(*cold, *warm)
    assert found.node == Took(240.0, 240.0)
    assert (found.median, found.last_cold) == (60.0, False)


def test_one_cold_start_among_the_last_few_makes_the_next_one_cold() -> None:
    warm = [started(f"w{i}", 100.0 * i) for i in range(8)]
    assert measured(*warm, started("c", 250.0, node=60.0)).last_cold is False
    assert measured(*warm, started("c", 550.0, node=60.0)).last_cold is True


def test_the_newest_starts_count_in_whatever_order_they_are_seen() -> None:
    slow_then_fast = [started(f"{99 - i}", 100.0 * i, load=200.0 if i < 40 else 20.0) for i in range(80)]
    assert measured(*sorted(slow_then_fast, key=lambda each: each.name)).p90 == 25.0


def test_a_pod_counts_once_however_many_there_are() -> None:
    meter = StartUpMeter()
    many = [started(f"p{i}", 10.0 * i, load=float(i)) for i in range(200)]
    meter.see(many)
    before = meter.start_up
    for turn in range(3):
        meter.see(many[turn:])
    assert meter.start_up == before


def test_what_is_not_known_of_a_start_is_left_out() -> None:
    found = measured(pod("a", since=60.0, created=0.0), pod("b", since=100.0, created=0.0, running_at=500.0))
    assert (found.median, found.image, found.load, found.node) == (100.0, None, None, None)


def test_a_pod_that_was_ready_long_before_it_was_seen_so_is_no_start() -> None:
    meter = StartUpMeter()
    meter.see([pod("old", since=90_000.0, created=0.0)])
    assert meter.start_up is None
