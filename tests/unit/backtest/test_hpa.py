"""The HPA of the simulation does what Kubernetes' own does: tolerance, windows, rate policies, limits."""

from __future__ import annotations

import pytest

from scaler.backtest.hpa import DOWN, UP, Behavior, Hpa, ScalingPolicy

FREE = (ScalingPolicy("Percent", 900, 15.0), ScalingPolicy("Pods", 100, 15.0))


def exact(minimum: int = 1, maximum: int = 100) -> Hpa:
    return Hpa(minimum, maximum, Behavior(0.0, FREE, tolerance=0.0), Behavior(0.0, DOWN.policies, tolerance=0.0))


@pytest.mark.parametrize(
    ("replicas", "value", "expected"),
    [(9, 10, 10), (10, 11, 10), (10, 12, 12), (20, 22, 20), (20, 23, 23), (20, 18, 20), (100, 110, 100)],
)
def test_the_default_tolerance_swallows_a_tenth(replicas: int, value: float, expected: int) -> None:
    hpa = Hpa(1, 200, Behavior(0.0, FREE), Behavior(0.0, DOWN.policies))
    assert hpa.sync(value, 0.0, replicas, replicas) == expected


@pytest.mark.parametrize(("replicas", "value"), [(10, 11), (20, 21), (21, 20), (64, 65)])
def test_without_tolerance_every_count_is_reached(replicas: int, value: int) -> None:
    assert exact().sync(value, 0.0, replicas, replicas) == value


def test_by_default_growth_is_the_greater_of_four_pods_and_doubling_in_15_seconds() -> None:
    hpa, counts, replicas = Hpa(1, 100), [], 1
    for sync in range(5):
        replicas = hpa.sync(100.0, sync * 15.0, replicas, replicas)
        counts.append(replicas)
    assert counts == [5, 10, 20, 40, 80]


def test_a_rate_policy_counts_what_was_added_within_its_period() -> None:
    up = Behavior(0.0, (ScalingPolicy("Pods", 4, 60.0),), tolerance=0.0)
    hpa, replicas, counts = Hpa(1, 100, up), 10, []
    for sync in range(6):
        replicas = hpa.sync(100.0, sync * 15.0, replicas, replicas)
        counts.append(replicas)
    assert counts == [14, 14, 14, 14, 18, 18]


def test_scaling_down_waits_for_the_highest_recommendation_of_five_minutes() -> None:
    hpa = Hpa(1, 100, UP, DOWN)
    assert hpa.sync(20.0, 0.0, 20, 20) == 20
    assert hpa.sync(5.0, 15.0, 20, 20) == 20
    assert hpa.sync(8.0, 299.0, 20, 20) == 20
    assert hpa.sync(5.0, 310.0, 20, 20) == 8


def test_the_first_look_takes_the_present_count_for_a_recommendation() -> None:
    hpa = Hpa(1, 100, UP, DOWN)
    assert hpa.sync(1.0, 0.0, 20, 20) == 20
    assert hpa.sync(1.0, 290.0, 20, 20) == 20
    assert hpa.sync(1.0, 301.0, 20, 20) == 1


def test_an_up_window_takes_the_lowest_recommendation() -> None:
    hpa = Hpa(1, 100, Behavior(30.0, FREE), DOWN)
    hpa.sync(10.0, 0.0, 10, 10)
    assert hpa.sync(30.0, 15.0, 10, 10) == 10
    assert hpa.sync(25.0, 31.0, 10, 10) == 25


def test_a_disabled_direction_does_not_move() -> None:
    down = Behavior(0.0, DOWN.policies, tolerance=0.0, select_policy="Disabled")
    assert Hpa(1, 100, UP, down).sync(1.0, 0.0, 10, 10) == 10


def test_the_least_policy_counts_where_so_selected() -> None:
    up = Behavior(0.0, (ScalingPolicy("Pods", 2, 15.0), ScalingPolicy("Percent", 100, 15.0)), 0.0, "Min")
    assert Hpa(1, 100, up).sync(50.0, 0.0, 10, 10) == 12


def test_limits_come_before_the_metric_and_zero_is_left_alone() -> None:
    assert exact(2, 8).sync(5.0, 0.0, 12, 12) == 8
    assert exact(2, 8).sync(5.0, 0.0, 1, 1) == 2
    assert exact(2, 8).sync(99.0, 0.0, 5, 5) == 8
    assert exact(1, 8).sync(5.0, 0.0, 0, 0) == 0


def test_surge_pods_drift_the_count_only_within_the_tolerance() -> None:
    tolerant = Hpa(1, 100, Behavior(0.0, FREE), Behavior(0.0, DOWN.policies))
    assert tolerant.sync(20.0, 0.0, 20, 21) == 21
    assert exact().sync(20.0, 0.0, 20, 21) == 20
