"""What a load is expected to be, and the margin that its own past says it needs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.policy.forecast import Forecast, Record, follow, least_margin, scatter

HORIZON_S = 60.0


def followed(
    load: Callable[[float], float],
    seconds: int,
    record: Record | None = None,
    *,
    begin: int = 0,
    horizon_s: float = HORIZON_S,
    allowed: float = 0.05,
    arrivals: bool = True,
) -> Record:
    """The record of a load that was seen once a second."""
    record = Record() if record is None else record
    for second in range(begin, begin + seconds):
        record = follow(
            record,
            float(second),
            load(second),
            arrivals=arrivals,
            horizon_s=horizon_s,
            window_s=10.0,
            allowed_excess=allowed,
        )
    return record


def forecast(record: Record) -> Forecast:
    assert record.forecast is not None
    return record.forecast


def noisy(seed: int) -> Callable[[float], float]:
    chance = random.Random(seed)
    return lambda _: max(0.0, chance.gauss(10, 1))


def jumping(second: float) -> float:
    """Ten, and for one minute of every five forty."""
    return 40.0 if 120 <= second % 300 < 180 else 10.0


def ramp(second: float) -> float:
    return 10 + 0.05 * second


def test_one_moment_is_not_enough_to_forecast_from() -> None:
    assert followed(noisy(1), 1).forecast is None


def test_before_errors_are_known_the_margin_is_that_of_chance() -> None:
    said = forecast(followed(lambda _: 10.0, 30))
    assert said.expected == pytest.approx(10.0)
    assert said.value == pytest.approx(10.0 + math.sqrt(10.0 / 10.0))  # 100 arrivals in the window, give or take 10


@pytest.mark.parametrize("seed", range(3))
def test_a_steady_noisy_load_gets_a_small_margin(seed: int) -> None:
    assert 9.4 <= forecast(followed(noisy(seed), 1800)).value < 11.0


def test_a_constant_load_gets_no_margin_once_that_is_known() -> None:
    assert forecast(followed(lambda _: 10.0, 1800, allowed=0.0)).value == pytest.approx(10.0)


def test_a_ramp_is_extrapolated_over_the_horizon() -> None:
    record = followed(ramp, 1200, allowed=0.01)
    assert forecast(record).value == pytest.approx(ramp(1200 + HORIZON_S), abs=1.0)


def test_a_tide_is_carried_on_by_a_line() -> None:
    def tide(second: float) -> float:
        return 10 + 0.05 * abs((second + 600) % 1200 - 600)

    said = forecast(followed(tide, 3600 + 400))
    assert "line" in said.by
    assert said.expected == pytest.approx(tide(400 + HORIZON_S), abs=0.5)
    assert said.value - said.expected < 1.0


def test_a_fall_is_extrapolated_and_never_below_zero() -> None:
    record = followed(lambda second: max(0.0, 60 - 0.05 * second), 1190)
    assert 0 <= forecast(record).expected <= 0.5
    assert forecast(record).value < 3.0


def test_a_load_that_jumps_every_few_minutes_gets_the_margin_of_its_jumps_in_the_calm_too() -> None:
    said = forecast(followed(jumping, 1800 + 100))
    assert said.value >= 30.0


def test_who_may_come_late_more_often_is_provided_with_less() -> None:
    values = [forecast(followed(jumping, 1900, allowed=allowed)).value for allowed in (0.01, 0.05, 0.2, 1.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.6 * values[0]


def test_jumps_are_forgotten_after_a_dozen_horizons() -> None:
    jumped = followed(jumping, 1500)
    calm = followed(lambda _: 10.0, 20 * 60, jumped, begin=1500, allowed=0.0)
    assert forecast(calm).value == pytest.approx(10.0)


@pytest.mark.parametrize("horizon_s", [0.1, 5.0, 60.0, 300.0])
def test_the_record_stays_bounded(horizon_s: float) -> None:
    record = followed(noisy(1), 6000, horizon_s=horizon_s)
    lengths = [len(part) for part in (record.past, record.pending, record.came, *record.errors)]
    assert max(lengths) <= 300
    assert followed(noisy(1), 600, record, begin=6000, horizon_s=horizon_s).came.itemsize <= 8  # plain numbers


def test_a_changed_horizon_begins_anew_and_says_what_it_said_until_it_knows() -> None:
    before = followed(jumping, 1900)
    after = followed(jumping, 1, before, begin=1900, horizon_s=3 * HORIZON_S)
    assert [len(part) for part in (after.past, after.pending, after.came, after.errors)] == [0] * 4
    assert after.forecast == before.forecast
    later = followed(lambda _: 10.0, 30, after, begin=1901, horizon_s=3 * HORIZON_S)
    assert forecast(later).value == pytest.approx(11.0)


def test_another_kind_of_load_begins_anew_and_is_not_told_what_the_first_will_be() -> None:
    before = followed(jumping, 1900)
    assert followed(lambda _: 3.0, 1, before, begin=1900, arrivals=False).forecast is None
    after = followed(lambda _: 3.0, 30, before, begin=1900, arrivals=False)
    assert forecast(after).value == pytest.approx(3.0)  # chance is of arrivals: others get no margin for it


def test_a_horizon_that_moves_a_little_keeps_the_record() -> None:
    before = followed(jumping, 1900)
    after = followed(jumping, 1, before, begin=1900, horizon_s=1.2 * HORIZON_S)
    assert after.came == before.came


def test_a_missed_tick_and_a_clock_that_stands_break_nothing() -> None:
    record = followed(lambda _: 10.0, 600, allowed=0.0)
    for time in (599.0, 599.0, 640.0, 641.0):
        record = follow(record, time, 10.0, arrivals=True, horizon_s=HORIZON_S, window_s=10.0, allowed_excess=0.0)
    assert forecast(record).value == pytest.approx(10.0)


def excess(errors: list[float], margin: float) -> float:
    """How far the errors stand out over a margin, on average over all."""
    return math.fsum(max(0.0, error - margin) for error in errors) / len(errors)


errors_of_all_kinds = st.lists(st.floats(-100, 100), min_size=1, max_size=60)


@given(errors_of_all_kinds, st.floats(0, 50))
def test_the_least_margin_allows_what_may_come_on_top_and_a_smaller_one_does_not(
    errors: list[float], allowed: float
) -> None:
    margin = least_margin(errors, allowed)
    assert margin >= 0
    assert excess(errors, margin) <= allowed + 1e-9
    if margin > 1e-3:
        assert excess(errors, margin - 1e-3) > allowed


@pytest.mark.parametrize(
    ("errors", "allowed", "margin"),
    [
        ([0.0] * 10, 0.0, 0.0),
        ([-3.0, -1.0], 0.0, 0.0),
        ([5.0, 0.0, 0.0, 0.0], 0.0, 5.0),
        ([5.0, 0.0, 0.0, 0.0], 0.5, 3.0),  # 2 stand out in one of four: a half on average
        ([5.0, 4.0, 0.0, 0.0], 0.5, 3.5),
        ([5.0, 4.0, 0.0, 0.0], 3.0, 0.0),
    ],
)
def test_a_margin_counts_how_much_comes_on_top_and_not_how_often(
    errors: list[float], allowed: float, margin: float
) -> None:
    assert least_margin(errors, allowed) == pytest.approx(margin)


@pytest.mark.parametrize("trend", [lambda _: 0.0, ramp, jumping], ids=["steady", "ramp", "jumps"])
def test_scatter_is_the_noise_whatever_the_trend(trend: Callable[[float], float]) -> None:
    """Steps of three seconds hold three draws each."""
    chance = random.Random(3)
    record = followed(lambda second: 100 + trend(second) + chance.gauss(0, 3), 1000)
    assert scatter(record, 10.0) == pytest.approx(3 / math.sqrt(3), rel=0.35)


def test_before_enough_was_seen_there_is_no_scatter() -> None:
    assert scatter(Record(), 10.0) == 0.0
    assert scatter(followed(noisy(1), 20), 10.0) == 0.0
