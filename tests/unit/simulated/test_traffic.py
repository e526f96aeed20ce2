"""Traffic comes at the rate that was asked for, in the mix that was asked for, and is the same for the same seed."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.simulated import traffic
from inference.simulated.traffic import BENCHMARK, CHAT, CODE, LONG_CONTEXT, Rate, arrivals

RATES = {
    "constant": traffic.constant(5.0),
    "wave": traffic.wave(5.0, 4.0, 200.0),
    "pulse": traffic.pulse(2.0, 10.0, 100.0, 50.0),
    "ramp": traffic.ramp(1.0, 9.0, 400.0),
    "steps": traffic.steps([(100.0, 2.0), (200.0, 8.0), (100.0, 1.0)]),
    "on-off": traffic.on_off(10.0, 20.0, 30.0),
}
ANY = pytest.mark.parametrize("rate", RATES.values(), ids=RATES)


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("constant", {0: 5, 399: 5}),
        ("wave", {0: 5, 50: 9, 100: 5, 150: 1, 250: 9}),
        ("pulse", {99.9: 2, 100: 20, 149.9: 20, 150: 2}),
        ("ramp", {0: 1, 200: 5, 400: 9, 1000: 9}),
        ("steps", {0: 2, 99.9: 2, 100: 8, 299.9: 8, 300: 1, 400: 0}),
        ("on-off", {0: 10, 19.9: 10, 20: 0, 49.9: 0, 50: 10}),
    ],
)
def test_a_rate_has_the_shape_of_its_name(name: str, points: dict[float, float]) -> None:
    assert {time: pytest.approx(RATES[name].at(time), abs=1e-9) for time in points} == points


@ANY
@settings(deadline=None)
@given(time=st.floats(0, 2000))
def test_no_rate_is_ever_above_its_peak_or_below_nothing(rate: Rate, time: float) -> None:
    assert 0 <= rate.at(time) <= rate.peak


@ANY
def test_as_many_requests_come_as_the_rate_says(rate: Rate) -> None:
    seconds = 400
    expected = sum(rate.at(second + 0.5) for second in range(seconds))
    came = [len(list(arrivals(rate, seconds, seed=seed))) for seed in range(20)]
    # A Poisson count has the variance of its mean; five standard errors of the mean of 20.
    assert sum(came) / 20 == pytest.approx(expected, abs=5 * math.sqrt(expected / 20))


@ANY
def test_requests_come_in_order_and_within_the_time(rate: Rate) -> None:
    times = [request.arrival_s for request in arrivals(rate, 300, seed=7)]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] < 300


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    def drawn(seed: int) -> list[traffic.Request]:
        return list(arrivals(RATES["wave"], 100, mix=[CHAT, CODE, LONG_CONTEXT], seed=seed))

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def test_classes_come_by_their_weights_with_their_lengths() -> None:
    rare = traffic.RequestClass("rare", BENCHMARK.prompt, BENCHMARK.output, weight=0.25)
    came = list(arrivals(traffic.constant(50.0), 400, mix=[CHAT, rare], seed=1))
    counts = Counter(request.request_class for request in came)
    assert counts["rare"] / len(came) == pytest.approx(0.2, abs=0.02)
    chats = [request for request in came if request.request_class == "chat"]
    prompts = sorted(request.prompt_tokens for request in chats)
    assert prompts[len(prompts) // 2] == pytest.approx(CHAT.prompt.median, rel=0.05)
    assert prompts[-1] <= CHAT.prompt.most
    assert all(request.cached_tokens == int(0.3 * request.prompt_tokens) for request in chats)
    assert {(r.prompt_tokens, r.output_tokens) for r in came if r.request_class == "rare"} == {(4000, 1000)}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: traffic.constant(0.0), "the highest rate is 0.0"),
        (lambda: traffic.steps([]), "the highest rate is 0.0"),
        (lambda: traffic.wave(1.0, 1.0, 0.0), "period_s is 0.0; it must be above 0"),
        (lambda: traffic.pulse(1.0, 20.0, 10.0, -1.0), "length_s is -1.0; it must be above 0"),
        (lambda: traffic.on_off(1.0, 10.0, 0.0), "off_s is 0.0; it must be above 0"),
    ],
)
def test_a_rate_that_means_nothing_is_refused(make: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
