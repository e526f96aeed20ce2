"""The slope of a series: a ramp has one, noise has none."""

from __future__ import annotations

import random

import pytest

from scaler.policy import trend


def series(values: list[float], window_s: float = 60.0, tick: float = 1.0) -> tuple[tuple[float, float], ...]:
    points: tuple[tuple[float, float], ...] = ()
    for i, value in enumerate(values):
        points = trend.append(points, i * tick, value, window_s)
    return points


def test_a_ramp_has_its_slope() -> None:
    assert trend.rising_slope(series([0.25 * i for i in range(120)])) == pytest.approx(0.25)


def test_a_noisy_ramp_has_nearly_its_slope_and_not_more() -> None:
    chance = random.Random(5)
    for _ in range(50):
        slope = trend.rising_slope(series([0.25 * i + chance.gauss(0, 1) for i in range(120)]))
        assert 0.18 < slope < 0.27


@pytest.mark.parametrize("values", [[4.0] * 100, [10 - 0.1 * i for i in range(100)], [], [1.0], [1.0, 9.0, 30.0]])
def test_a_flat_or_falling_or_short_series_has_none(values: list[float]) -> None:
    assert trend.rising_slope(series(values)) == 0.0


def test_steady_noise_has_hardly_ever_a_slope_and_then_a_small_one() -> None:
    chance = random.Random(7)
    slopes = [trend.rising_slope(series([10 + chance.gauss(0, 1) for _ in range(60)])) for _ in range(400)]
    assert sum(slope > 0 for slope in slopes) < 0.05 * len(slopes)
    assert max(slopes) * 60 < 1.0  # carried on over a minute: less than the noise itself


def test_points_are_thinned_and_old_ones_forgotten() -> None:
    points = series([float(i) for i in range(1000)], window_s=32.0, tick=0.25)
    assert len(points) <= trend.POINTS + 1
    assert points[0][0] >= points[-1][0] - 32.0


def test_a_clock_that_stands_adds_no_points() -> None:
    points = trend.append((), 5.0, 1.0, 60.0)
    assert trend.append(points, 5.0, 9.0, 60.0) == points
