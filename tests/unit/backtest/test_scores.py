"""What a run gave and cost: shares of all requests, and of those that could have been served in time at all."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.simulated import MEMORY_BOUND, TIME_BOUND, Engine, Finished, Profile, Request
from scaler.backtest.contender import Maker
from scaler.backtest.entrants import entrant
from scaler.backtest.plant import Plant
from scaler.backtest.scores import numbers
from scaler.backtest.work import feasible

EVEN = [replace(p, step_time=replace(p.step_time, jitter=0.0)) for p in (TIME_BOUND, MEMORY_BOUND)]
ONE: Maker = entrant("static-1").maker


def alone(profile: Profile, request: Request) -> Finished:
    """What an idle engine of even pace makes of one request."""
    engine = Engine(profile)
    engine.submit(request, 0.0)
    (finished,) = [event for event in engine.advance(1e5) if isinstance(event, Finished)]
    return finished


@given(
    st.sampled_from(EVEN),
    st.integers(1, 100_000),
    st.integers(1, 3000),
    st.floats(0, 1),
)
def test_a_request_is_feasible_just_where_an_idle_engine_serves_it_in_time(
    profile: Profile, prompt: int, output: int, cached: float
) -> None:
    request = Request(0.0, prompt, output, cached_tokens=int(cached * prompt))
    took = alone(profile, request)
    for leeway, possible in ((1.001, True), (0.999, False)):
        ttft, tpot = feasible_within(profile, request, took, leeway)
        assert ttft == possible
        assert tpot == possible or output == 1


def feasible_within(profile: Profile, request: Request, took: Finished, leeway: float) -> tuple[bool, bool]:
    """Whether it is held to be feasible with objectives a little beyond or within what it took."""
    (ttft,) = feasible(profile, [request], took.ttft_s * leeway, math.inf)
    (tpot,) = feasible(profile, [request], math.inf, took.tpot_s * leeway)
    return bool(ttft), bool(tpot)


@pytest.mark.parametrize("tokens", [(131_000, 1000), (500_000, 1)])
def test_a_request_that_no_engine_takes_is_not_feasible(tokens: tuple[int, int]) -> None:
    assert not feasible(MEMORY_BOUND, [Request(0.0, *tokens)], math.inf, math.inf).any()


def test_attainment_of_the_feasible_leaves_out_what_nobody_could_serve_in_time() -> None:
    plant = Plant()
    short, long = ([Request(i * 10.0, tokens, 5) for i in range(6)] for tokens in (100, 60_000))
    both = sorted([*short, *long], key=lambda request: request.arrival_s)
    run = plant.play(both, 100.0, ONE)
    gave = numbers(run, plant)
    assert gave["requests"] == {"all": 12, "feasible": 6, "not_served": 0}
    assert gave["attainment"]["ttft"] <= 0.5 <= gave["attainment_feasible"]["ttft"]


def test_without_requests_no_share_is_told() -> None:
    plant = Plant()
    gave = numbers(plant.play([], 100.0, ONE), plant)
    assert gave["attainment_feasible"] == gave["attainment"] == {"ttft": None, "tpot": None, "both": None}
    assert gave["average_replicas"] == pytest.approx(1.0)
