"""The curve of a replica: throughput and time per token over the load, and where each profile gives way."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from inference.simulated import MEMORY_BOUND, TIME_BOUND, Engine, Finished, Profile, Request
from inference.simulated.fleet import Fleet
from inference.simulated.slo import SloSummary, summarize
from inference.simulated.traffic import BENCHMARK, arrivals, constant

BOTH = pytest.mark.parametrize("profile", [TIME_BOUND, MEMORY_BOUND], ids=lambda profile: profile.name)
SEEDS = range(4)


def under(profile: Profile, rate: float, seed: int) -> SloSummary:
    """One replica, 2,000 s of Poisson arrivals of 4,000/1,000 tokens."""
    fleet = Fleet(arrivals(constant(rate), 2000, mix=[BENCHMARK], seed=seed), profile=profile, seed=seed)
    fleet.scale(1, 0.0)
    return summarize(fleet.advance(20_000))


def attainment(profile: Profile, rate: float) -> float:
    return sum(under(profile, rate, seed).attainment.both for seed in SEEDS) / len(SEEDS)


@BOTH
def test_a_replica_sustains_the_published_rate_within_its_objectives_and_not_much_more(profile: Profile) -> None:
    assert attainment(profile, 1.4) > 0.95
    assert attainment(profile, 1.55) < 0.75


def test_the_two_profiles_fail_in_different_ways() -> None:
    for seed in SEEDS:
        time_bound, memory_bound = under(TIME_BOUND, 1.48, seed), under(MEMORY_BOUND, 1.55, seed)
        assert time_bound.attainment.ttft > 0.97 > time_bound.attainment.tpot
        assert memory_bound.attainment.tpot > 0.97 > memory_bound.attainment.ttft


@BOTH
def test_throughput_rises_with_the_batch_and_flattens_while_the_time_per_token_rises(profile: Profile) -> None:
    profile = replace(profile, step_time=replace(profile.step_time, jitter=0.0))
    batches = (1, 4, 16, 64, 256)
    throughput, per_token = [], []
    for batch in batches:
        engine = Engine(profile)
        for _ in range(batch):
            engine.submit(Request(0.0, 100, 400), 0.0)
        finished = [event for event in engine.advance(1000) if isinstance(event, Finished)]
        throughput.append(batch * 400 / max(event.time for event in finished))
        per_token.append(finished[-1].tpot_s)
    assert throughput == sorted(throughput)
    assert per_token == sorted(per_token)
    # Four times the batch gives nearly four times the tokens at first, and much less at last.
    gains = [after / before for before, after in pairwise(throughput)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 3.5
    assert gains[-1] < 2.5


def test_long_contexts_slow_decoding() -> None:
    short, long = Engine(TIME_BOUND), Engine(TIME_BOUND)
    for engine, prompt in ((short, 100), (long, 100_000)):
        for _ in range(8):
            engine.submit(Request(0.0, prompt, 500), 0.0)
    (*_, short_end), (*_, long_end) = short.advance(1000), long.advance(1000)
    assert long_end.tpot_s > 2 * short_end.tpot_s
