"""The emitted value brings the HPA to the wanted count, or the emission says where it arrives and why."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from scaler.policy import Limits
from scaler.policy.emission import ToleranceMode, emit

MODES: tuple[ToleranceMode, ...] = ("exact", "round-up", "hold")
MINIMUM, MAXIMUM = 1, 700


def hpa(value: float, current: int, up: float, down: float, minimum: int = MINIMUM, maximum: int = MAXIMUM) -> int:
    """Where the HPA arrives for one AverageValue metric with target 1, in its own steps.

    Written from the controller's source, apart from the product: the metric travels in thousandths, the ratio and
    the band are IEEE doubles compared as they are, the count is rounded up exactly.
    """
    thousandths = int(value * 1000)
    assert thousandths == value * 1000, "KEDA would round the value"
    ratio = float(thousandths) / (1000.0 * float(current))
    inside = 1.0 - down <= ratio <= 1.0 + up
    recommended = current if inside else -(-thousandths // 1000)
    return max(minimum, 1, min(maximum, recommended))


# n: the counts above and below that the default tolerance of 0.1 swallows, as Kubernetes' source computes them
SWALLOWED = {
    9: ([], []),
    10: ([11], [9]),
    16: ([17], [15]),
    20: ([21, 22], [19, 18]),
    30: ([31, 32, 33], [29, 28, 27]),
    50: ([51, 52, 53, 54, 55], [49, 48, 47, 46, 45]),
    64: (list(range(65, 71)), list(range(63, 57, -1))),
    100: (list(range(101, 111)), list(range(99, 89, -1))),
}


@pytest.mark.parametrize(("current", "swallowed"), SWALLOWED.items())
def test_the_band_of_the_model_is_the_published_one(current: int, swallowed: tuple[list[int], list[int]]) -> None:
    up, down = swallowed
    inside = [count for count in range(1, 200) if hpa(count, current, 0.1, 0.1) == current and count != current]
    assert inside == sorted(up + down)


def neighbourhood(current: int) -> list[int]:
    """Counts near the present one, at the edges of the usual bands, and at the limits."""
    near = range(current - 4, current + 5)
    edges = [math.floor(current * share) + d for share in (0.8, 0.9, 1.1, 1.2) for d in (-1, 0, 1, 2)]
    ends = (0, MINIMUM, MINIMUM + 1, MAXIMUM - 1, MAXIMUM, current * 2, current // 2)
    return sorted({count for count in (*near, *edges, *ends) if 0 <= count <= MAXIMUM})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("up", "down"), [(0.0, 0.0), (0.1, 0.1), (0.0, 0.2), (0.15, 0.05), (0.07, 0.0)])
def test_every_count_is_reached_or_the_emission_says_where_the_hpa_arrives(
    mode: ToleranceMode, up: float, down: float
) -> None:
    limits = Limits(MINIMUM, MAXIMUM, up, down)
    for current in range(1, 601):
        for desired in neighbourhood(current):
            emission = emit(desired, current, limits, mode)
            arrived = hpa(emission.value, current, up, down)
            assert emission.arrives_at == arrived, (current, desired)
            assert (arrived == desired) == (not emission.note), (current, desired, emission)
            reachable = hpa(desired, current, up, down) == desired
            if reachable or desired in (MINIMUM, MAXIMUM):
                assert arrived == desired, (current, desired)
            if arrived != desired and desired > 0:
                assert str(current) in emission.note
                assert str(desired) in emission.note


@pytest.mark.parametrize("mode", MODES)
def test_without_tolerance_every_count_is_reached_from_every_count(mode: ToleranceMode) -> None:
    limits = Limits(MINIMUM, MAXIMUM, 0.0, 0.0)
    for current in range(1, 601):
        for desired in neighbourhood(current):
            if desired:
                emission = emit(desired, current, limits, mode)
                assert (emission.value, emission.arrives_at, emission.note) == (desired, desired, "")


@pytest.mark.parametrize("tolerance", [0.1, 0.15, 0.07, 0.3])
def test_round_up_goes_to_the_first_count_that_passes_and_never_below_what_is_wanted(tolerance: float) -> None:
    limits = Limits(MINIMUM, MAXIMUM, tolerance, tolerance)
    for current in range(1, 601):
        for desired in range(current + 1, min(MAXIMUM, math.floor(current * (1 + tolerance)) + 2)):
            emission = emit(desired, current, limits, "round-up")
            passing = next(n for n in range(desired, 1000) if hpa(n, current, tolerance, tolerance, 1, 1000) != current)
            assert emission.arrives_at == min(passing, MAXIMUM), (current, desired)


def test_hold_stays_until_the_count_passes_by_itself() -> None:
    limits = Limits(1, 100, 0.1, 0.1)
    assert [emit(desired, 20, limits, "hold").arrives_at for desired in (21, 22, 23)] == [20, 20, 23]
    assert [emit(desired, 20, limits, "hold").arrives_at for desired in (19, 18, 17)] == [20, 20, 17]


def test_exact_emits_the_count_itself_and_names_the_setting_that_lets_it_through() -> None:
    emission = emit(21, 20, Limits(1, 100, 0.1, 0.1), "exact")
    assert emission.value == 21
    assert emission.arrives_at == 20
    assert "tolerance 0" in emission.note
    assert "toleranceMode: round-up" in emission.note


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("maximum", "current"), [(64, 60), (22, 20), (101, 100), (600, 599)])
def test_at_the_maximum_a_value_beyond_the_band_is_clamped_to_it(
    mode: ToleranceMode, maximum: int, current: int
) -> None:
    emission = emit(maximum, current, Limits(1, maximum, 0.1, 0.1), mode)
    assert emission.note == ""
    assert hpa(emission.value, current, 0.1, 0.1, 1, maximum) == maximum


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("minimum", "current"), [(19, 20), (64, 70), (99, 100)])
def test_at_the_minimum_nothing_is_emitted_so_that_the_hpa_goes_there(
    mode: ToleranceMode, minimum: int, current: int
) -> None:
    emission = emit(minimum, current, Limits(minimum, 600, 0.1, 0.1), mode)
    assert emission.note == ""
    assert hpa(emission.value, current, 0.1, 0.1, minimum, 600) == minimum


def test_zero_is_left_to_keda_and_the_emission_says_so() -> None:
    emission = emit(0, 3, Limits(0, 10, 0.1, 0.1), "exact")
    assert (emission.value, emission.arrives_at) == (0.0, 1)
    assert "KEDA" in emission.note


def test_surge_pods_inside_the_band_are_said_to_drift_the_count() -> None:
    """During a rollout status.replicas is one more than spec.replicas, and inside the band the HPA keeps that."""
    limits = Limits(1, 100, 0.1, 0.1)
    emission = emit(desired=20, current=21, limits=limits, mode="exact")
    assert hpa(emission.value, 21, 0.1, 0.1) == emission.arrives_at == 21
    assert "21" in emission.note
    assert "20" in emission.note
    assert emit(20, 21, Limits(1, 100, 0.0, 0.0), "exact").note == ""


@examples(deadline=None)
@given(
    desired=st.integers(0, 5000),
    current=st.integers(0, 5000),
    minimum=st.integers(0, 50),
    span=st.integers(0, 5000),
    up=st.floats(0, 1),
    down=st.floats(0, 1),
    mode=st.sampled_from(MODES),
)
def test_the_value_is_a_whole_number_in_both_of_kedas_fields_and_the_arrival_is_within_limits(
    desired: int, current: int, minimum: int, span: int, up: float, down: float, mode: ToleranceMode
) -> None:
    limits = Limits(minimum, max(1, minimum + span), up, down)
    emission = emit(desired, current, limits, mode)
    assert emission.value >= 0
    assert math.ceil(emission.value) == emission.value  # the integer field says what the float field says
    assert max(1, minimum) <= emission.arrives_at <= limits.maximum
