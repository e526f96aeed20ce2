from __future__ import annotations

import pytest

from scaler.cluster.ray.contest import FIRST_PAUSE_S, LONGEST_PAUSE_S, Memory, looked, written


def test_the_first_look_takes_what_is_there_for_granted() -> None:
    memory = looked(None, generation=3, count=5, wanted=2, now=0.0)
    assert memory == Memory(generation=3, count=5)


def test_what_we_have_written_is_nobody_elses() -> None:
    memory = written(looked(None, 3, 5, 2, 0.0), generation=4, count=2)
    assert looked(memory, 4, 2, 2, 1.0).times == 0
    assert looked(memory, 4, 2, 7, 1.0).times == 0  # something else is wanted by now


@pytest.mark.parametrize(("found", "times"), [(9, 1), (7, 0)], ids=["another count", "the wanted one"])
def test_another_count_than_ours_is_somebody_elses_unless_it_is_the_wanted_one(found: int, times: int) -> None:
    memory = looked(Memory(generation=4, count=2), 5, found, wanted=7, now=10.0)
    assert memory.times == times


def test_the_first_time_it_is_put_right_at_once_and_who_insists_is_left_alone_for_longer_each_time() -> None:
    memory, now, pauses = Memory(generation=1, count=2), 0.0, []
    for generation in range(2, 13):
        memory = looked(memory, generation, 9, wanted=2, now=now)
        pauses.append(memory.until - now)
        assert memory.pause_s == pauses[-1]
        now = memory.until
        assert looked(memory, generation, 9, 2, now) == memory  # it stands there, and that is no change
        memory = written(memory, generation, 2)
    assert pauses[:4] == [0.0, FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_after_a_long_calm_all_is_forgotten() -> None:
    contested = looked(Memory(1, 2), 2, 9, 2, now=0.0)
    calm = looked(written(contested, 3, 2), 3, 2, 2, now=contested.until + LONGEST_PAUSE_S + 1)
    assert calm.times == 0
