"""How long the next start takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaler.policy import StartUp, Took
from scaler.policy.starts import cold_s, waits_for_node, warm_s
from tests.unit.policy.world import Tape, preset, see, settings, text_of

UNSEEN = None
WARM = StartUp(60.0, 70.0, warm=Took(60.0, 70.0))
COLD = StartUp(240.0, 300.0, cold=Took(240.0, 300.0), node=Took(170.0, 220.0), last_cold=True)
BOTH = replace(COLD, warm=Took(60.0, 70.0))


@pytest.mark.parametrize(
    ("start_up", "warm", "cold"),
    [(UNSEEN, 60.0, 240.0), (WARM, 60.0, 240.0), (COLD, 70.0, 240.0), (BOTH, 60.0, 240.0)],
    ids=["none seen", "only warm", "only cold", "both"],
)
def test_each_kind_of_start_is_taken_from_those_that_were_seen(
    start_up: StartUp | None, warm: float, cold: float
) -> None:
    assert (warm_s(start_up), cold_s(start_up)) == (warm, cold)


@pytest.mark.parametrize(
    ("start_up", "unschedulable", "room", "waits"),
    [
        (UNSEEN, 0, 0, False),
        (WARM, 0, 0, False),
        (BOTH, 0, 0, True),
        (WARM, 1, 0, True),
        (UNSEEN, 1, 0, True),
        (BOTH, 0, 1, False),
        (WARM, 1, 1, False),
    ],
)
def test_the_next_replica_waits_for_a_node_as_the_last_ones_did_unless_room_is_kept(
    start_up: StartUp | None, unschedulable: int, room: int, waits: bool
) -> None:
    seen = see(unschedulable=unschedulable, room=room, start_up=start_up)
    assert waits_for_node(seen) is waits


@pytest.mark.parametrize(("room", "horizon"), [(0, "250s"), (2, "70s")], ids=["a node first", "room is kept"])
def test_the_load_is_forecast_over_the_start_that_the_next_replica_will_have(room: int, horizon: str) -> None:
    tape = Tape(settings(targetOngoingRequests=10, lookAhead="auto"))
    for running in range(10, 600):
        tape.tick(running=running, start_up=BOTH, room=room)
    assert f"expected in {horizon}" in text_of(tape.decision)


def test_what_falls_only_after_a_node_would_be_there_is_needed_until_then() -> None:
    counts = []
    for room in (0, 2):  # with room, nothing is looked ahead for over the time of a node
        tape = Tape(preset("adaptive", downscaleDelay="0"), ready=40)
        for second in range(1500):
            tape.tick(running=max(50.0, 400 - max(0, second - 600)), start_up=BOTH, room=room, minimum=1)
        counts.append(tape.counts)
    assert all(waits >= has_room for waits, has_room in zip(*counts, strict=True))
