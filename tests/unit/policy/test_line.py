"""The line through a latency over a load: what it takes from points, and what it does not believe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.policy.line import Line


def through(*points: tuple[float, float], memory: float = 1e6) -> Line:
    line = Line()
    for x, y in points:
        line = line.add(x, y, weight=1.0, memory=memory)
    return line


@pytest.mark.parametrize("points", [(), ((0.0, 3.0), (0.0, 5.0))], ids=["nothing", "only at rest"])
def test_without_load_there_is_no_line(points: tuple[tuple[float, float], ...]) -> None:
    assert through(*points).fit() is None


def test_points_that_vary_give_their_line() -> None:
    fit = through(*((float(x), 0.02 + 0.001 * x) for x in range(1, 31))).fit()
    assert fit == (pytest.approx(0.02, rel=0.1), pytest.approx(0.001, rel=0.1))


def test_points_at_one_load_say_nothing_of_another_but_that_it_is_proportional() -> None:
    assert through(*[(8.0, 0.04)] * 20).fit() == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.005))


def test_a_latency_that_falls_with_load_counts_as_flat() -> None:
    fit = through(*((float(x), 5.0 - 0.1 * x) for x in range(1, 11))).fit()
    assert fit == (pytest.approx(5.0 - 0.1 * 5.5), 0.0)


def test_an_observation_of_twice_the_weight_counts_as_two() -> None:
    once = through((2.0, 1.0), (4.0, 3.0), (4.0, 3.0)).fit()
    twice = Line().add(2.0, 1.0, weight=1.0, memory=1e6).add(4.0, 3.0, weight=2.0, memory=1e6).fit()
    assert once is not None
    assert twice == pytest.approx(once, rel=1e-4)


def test_what_is_old_is_forgotten_as_new_weight_comes() -> None:
    old = [(float(x), 0.1 * x) for x in range(1, 11)] * 10
    new = [(float(x), 0.3 * x) for x in range(1, 11)] * 10
    fit = through(*old, *new, memory=20.0).fit()
    assert fit is not None
    assert fit[1] == pytest.approx(0.3, rel=0.02)


load = st.floats(0.1, 300)
pairs = st.lists(st.tuples(load, st.floats(0, 100)), min_size=1, max_size=40)


@given(pairs)
def test_neither_part_of_a_line_is_below_zero(points: list[tuple[float, float]]) -> None:
    fit = through(*points).fit()
    assert fit is not None
    assert min(fit) >= 0


@given(st.floats(0, 10), st.floats(0, 1), st.lists(load, min_size=1, max_size=40), st.floats(1, 10))
def test_beyond_what_was_seen_it_promises_no_better_latency_than_the_points_do(
    idle: float, slope: float, loads: list[float], beyond: float
) -> None:
    fit = through(*((x, idle + slope * x) for x in loads)).fit()
    assert fit is not None
    x = beyond * max(loads)
    assert fit[0] + fit[1] * x >= (idle + slope * x) * (1 - 1e-6)
