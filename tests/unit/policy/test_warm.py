"""Warm capacity: how much room on nodes is wanted ahead of the replicas, and what it may cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.policy import Decision, StartUp, decide
from scaler.policy.observation import Took
from tests.unit.policy.world import Tape, first, see, settings

NODE_AND_POD_S = 260
"""A bit more than what is looked ahead with pods that start in a minute or less."""


def warm_step(decision: Decision | None) -> str:
    assert decision is not None
    (text,) = [step.text for step in decision.steps if step.rule == "warm"]
    return text


def growing(tape: Tape, seconds: int, per_minute: float) -> list[int]:
    """Let a steady growth of requests, 10 a replica, be seen; returns the room wanted at each tick."""
    rooms = []
    for i in range(seconds):
        tape.tick(running=40 + i * per_minute * 10 / 60)
        assert tape.decision is not None
        rooms.append(tape.decision.warm)
    return rooms


@pytest.mark.parametrize(
    ("warm_replicas", "desired", "maximum", "room"),
    [
        ("0", 4, 100, 0),
        ("2", 4, 100, 2),
        ("2", 4, 5, 1),
        ("2", 4, 4, 0),
        ("2", 0, 5, 2),
        ("25%", 4, 100, 1),
        ("30%", 4, 100, 2),
        ("30%", 0, 100, 0),
    ],
)
def test_a_count_or_a_percentage_is_what_it_says_within_the_maximum(
    warm_replicas: str, desired: int, maximum: int, room: int
) -> None:
    seen = see(running=10.0 * desired, ready=desired, maximum=maximum)
    decision = first(settings(targetOngoingRequests=10, warmReplicas=warm_replicas), seen)
    assert (decision.desired, decision.warm) == (desired, room)
    assert room == 0 or f"room for {room} more" in warm_step(decision)


def test_nothing_is_kept_warm_unless_asked_for() -> None:
    assert first(settings(targetOngoingRequests=10), see(running=40)).warm == 0


def test_a_steady_growth_gets_the_room_that_it_needs_once_a_node_could_be_there() -> None:
    tape = Tape(settings(targetOngoingRequests=10, warmReplicas="auto", maxWarmReplicas="100%"))
    rooms = growing(tape, 900, per_minute=0.5)
    assert rooms[0] == 0
    grown = 0.5 * NODE_AND_POD_S / 60
    assert grown - 1 <= rooms[-1] <= grown + 2
    assert "may be needed in 250s" in warm_step(tape.decision)


def test_with_nodes_made_ahead_replicas_are_looked_ahead_for_over_the_time_of_a_pod() -> None:
    def ahead(warm_replicas: str, **seen: int) -> list[str]:
        tape = Tape(settings(targetOngoingRequests=10, lookAhead="auto", warmReplicas=warm_replicas))
        start_up = StartUp(90, 120, warm=Took(40, 50), cold=Took(290, 300), last_cold=True)
        texts = []
        for i in range(900):
            tape.tick(running=40 + i / 10, start_up=start_up, **seen)
            assert tape.decision is not None
            texts += [step.text for step in tape.decision.steps if step.rule == "look_ahead"]
        return texts

    assert all("expected in 50s" in text for text in ahead("auto"))
    for with_a_node in (ahead("0"), ahead("auto", unschedulable=1)):
        assert any("expected in 300s" in text for text in with_a_node)


def test_a_steady_load_needs_no_room() -> None:
    tape = Tape(settings(targetOngoingRequests=10, warmReplicas="auto"))
    tape.run(900, running=40)
    assert tape.decision is not None
    assert tape.decision.warm == 0


def test_what_the_forecast_wants_is_bounded_by_a_stated_cost() -> None:
    tape = Tape(settings(targetOngoingRequests=10, warmReplicas="auto", maxWarmReplicas="1"))
    assert max(growing(tape, 900, per_minute=2)) == 1
    assert "cut to 1 by maxWarmReplicas 1" in warm_step(tape.decision)


def test_room_is_given_back_only_after_the_time_that_it_takes_to_make() -> None:
    tape = Tape(settings(targetOngoingRequests=10, warmReplicas="auto"))
    (*_, room) = growing(tape, 600, per_minute=1)
    assert room > 0
    tape.run(NODE_AND_POD_S - 60, running=40)
    assert tape.decision is not None
    assert tape.decision.warm == room
    tape.run(3600, running=40)  # the growth that ended is forgotten as a forecast's error, too
    assert tape.decision.warm == 0


def test_room_stays_while_nothing_can_be_seen() -> None:
    tape = Tape(settings(targetOngoingRequests=10, warmReplicas="auto"))
    (*_, room) = growing(tape, 600, per_minute=1)
    tape.run(900, unknown=tape.ready)
    assert tape.decision is not None
    assert tape.decision.warm == room
    assert "as before" in warm_step(tape.decision)


def test_no_room_is_asked_for_while_the_replicas_themselves_find_no_node() -> None:
    stuck = see(running=60, ready=4, unschedulable=2, unschedulable_s=1000, lacks="nvidia.com/gpu")
    decision = first(settings(targetOngoingRequests=10, warmReplicas=2), stuck)
    assert decision.blocked
    assert decision.warm == 0
    assert "none, for the replicas themselves find no node" in warm_step(decision)


def test_room_is_no_reason_for_a_count() -> None:
    decision = first(settings(targetOngoingRequests=10, warmReplicas=2), see(running=60))
    assert decision.reason.startswith("signals: ")


@given(
    st.sampled_from(["auto", "3", "150%"]),
    st.lists(st.tuples(st.floats(0, 500), st.integers(0, 12), st.integers(0, 2)), min_size=1, max_size=40),
    st.integers(0, 30),
)
def test_count_and_room_are_never_more_than_the_maximum(
    warm_replicas: str, moments: list[tuple[float, int, int]], maximum: int
) -> None:
    ours = settings(targetOngoingRequests=10, warmReplicas=warm_replicas, metricsInterval="10s")
    state = None
    for i, (running, ready, unknown) in enumerate(moments):
        seen = see(10.0 * i, running=running, ready=ready, unknown=min(ready, unknown), maximum=maximum)
        state, decision = decide(ours, state, seen)
        assert decision.warm >= 0
        assert decision.warm == 0 or decision.desired + decision.warm <= maximum
