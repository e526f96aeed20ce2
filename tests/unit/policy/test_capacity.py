"""What is learned of a replica's capacity, and what is asked of one because of it."""

from __future__ import annotations

import pytest

from scaler.policy import State
from scaler.policy.capacity import learn, target_ongoing
from scaler.policy.state import Capacity
from tests.unit.policy.world import first, see, settings


def learned(*ticks: dict[str, float], seconds: float = 1.0) -> Capacity:
    capacity = Capacity()
    for i, seen in enumerate(ticks):
        capacity = learn(capacity, see(i * seconds, **seen))  # type: ignore[arg-type]
    return capacity


def test_before_a_replica_was_full_what_one_carried_is_what_one_should_carry() -> None:
    assert target_ongoing(learned({"most_running": 7.0}, {"most_running": 3.0})) == (
        7.0,
        "the most that one carried so far",
    )


def test_nothing_known_asks_one_request_of_a_replica_and_does_not_divide_by_zero() -> None:
    assert target_ongoing(Capacity())[0] == 1.0
    assert first(settings(), see(ready=1)).desired == 0


def test_a_queue_of_a_moment_is_not_a_full_replica() -> None:
    assert learned({"full_running": 9.0}, {"full_running": 9.0}, {}).slots is None
    assert learned({"full_running": 9.0}, {}, {"full_running": 9.0}, {}, {"full_running": 9.0}).slots is None


def test_slots_are_what_runs_while_others_wait_for_three_seconds() -> None:
    capacity = learned(*[{"full_running": 16.0, "most_running": 16.0}] * 4)
    assert capacity.slots == 16.0
    assert target_ongoing(capacity) == (pytest.approx(12.8), "80% of its 16 slots")


def test_more_slots_are_believed_at_once_and_fewer_slowly() -> None:
    full = [{"full_running": 16.0}] * 4
    assert learned(*full, {"full_running": 32.0}).slots == 32.0
    after = learned(*full, {"full_running": 8.0}).slots
    assert after is not None
    assert 15 < after < 16
    settled = learned(*full, *[{"full_running": 8.0}] * 120).slots
    assert settled == pytest.approx(8.0, abs=0.1)


def test_a_full_replica_that_runs_nothing_still_has_a_slot() -> None:
    assert learned(*[{"full_running": 0.0}] * 5).slots == 1.0


def test_kv_room_is_learned_from_use_and_caps_the_target() -> None:
    capacity = learned({"running": 40.0, "kv_cache_usage": 0.5, "most_running": 30.0})
    assert capacity.room == 20.0  # 10 a pod fill half of it
    assert target_ongoing(capacity) == (16.0, "80% of the 20 its KV cache holds")


def test_a_nearly_empty_kv_cache_tells_nothing_about_its_room() -> None:
    assert learned({"running": 4.0, "kv_cache_usage": 0.01}).room is None


def test_given_slots_stand_in_for_learned_ones_and_kv_room_still_caps() -> None:
    given = settings(maxNumSeqs=100)
    assert first(given, see(ready=4, running=240)).demand == {"learned capacity": 3.0}
    demand = first(given, see(ready=4, running=240, kv_cache_usage=0.75)).demand
    assert demand == {"learned capacity": pytest.approx(240 / (0.8 * 80))}


def test_what_was_learned_survives_a_change_of_settings_and_a_gap() -> None:
    state = State(desired=5, capacity=Capacity(carried=9.0, slots=16.0, full_since=3.0))
    assert state.under_new_settings().capacity.slots == 16.0
    after = state.after_gap(10_000.0)
    assert (after.desired, after.capacity) == (5, Capacity(carried=9.0, slots=16.0))
