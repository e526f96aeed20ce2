"""The engine plays the same as the plain reference, loses nothing, and keeps its rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.simulated import (
    MEMORY_BOUND,
    TIME_BOUND,
    Engine,
    Finished,
    FirstToken,
    Profile,
    Request,
    StepTime,
)
from inference.simulated.metrics import Histogram
from tests.unit.simulated.reference import play

# Odd numbers, so that no two moments and no bucket bound meet by chance.
ODD = StepTime(
    overhead_s=0.011317,
    per_sequence_s=0.000713,
    per_kv_token_s=0.0000371,
    per_prompt_token_s=0.000917,
    per_attention_pair_s=0.0000131,
    jitter=0.0719,
)


@st.composite
def small_engines(draw: st.DrawFn) -> Profile:
    seqs = draw(st.integers(1, 6))
    return Profile(
        name="small",
        step_time=replace(ODD, jitter=draw(st.sampled_from([0.0, ODD.jitter]))),
        num_gpu_blocks=draw(st.integers(12, 60)),
        block_size=draw(st.sampled_from([1, 3, 4, 16])),
        max_num_seqs=seqs,
        max_num_batched_tokens=seqs + draw(st.integers(1, 40)),
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Profile, list[Request]]:
    profile = draw(small_engines())
    room = profile.kv_tokens
    time = 0.0
    requests = []
    for _ in range(draw(st.integers(1, 14))):
        time += draw(st.sampled_from([0.0, 0.00317, 0.0413, 0.3719, 2.717]))
        prompt = draw(st.integers(1, min(60, room - 1)))
        output = draw(st.integers(1, min(90, room - prompt)))
        requests.append(Request(time, prompt, output, cached_tokens=draw(st.integers(0, prompt))))
    return profile, requests


def run(profile: Profile, requests: list[Request], *, chops: list[float] | None = None) -> tuple[Engine, list]:
    """Play until all have finished, stopping at the arrivals and, besides, at the chops."""
    engine = Engine(profile)
    events = []
    stops = [(request.arrival_s, request) for request in requests]
    stops += [(time, None) for time in chops or []]
    for time, request in sorted(stops, key=lambda stop: stop[0]):
        events += engine.advance(time)
        if request is not None:
            engine.submit(request, time)
    return engine, events + engine.advance(1e6)


def finished_by_identity(events: list) -> dict[int, Finished]:
    return {id(event.request): event for event in events if isinstance(event, Finished)}


def bucketed(histogram: Histogram, values: list[float]) -> list[int]:
    same = Histogram(histogram.bounds)
    for value in values:
        same.observe(value)
    return same.counts


@settings(deadline=None)
@given(worlds())
def test_every_moment_is_that_of_the_step_by_step_reference(world: tuple[Profile, list[Request]]) -> None:
    profile, requests = world
    engine, events = run(profile, requests)
    reference = play(profile, requests)
    finished = finished_by_identity(events)
    for job in reference.jobs:
        event = finished[id(job.request)]
        assert event.scheduled == pytest.approx(job.scheduled, rel=1e-9)
        assert event.first_token == pytest.approx(job.first_token, rel=1e-9)
        assert event.time == pytest.approx(job.finished, rel=1e-9)
        assert event.preemptions == job.preemptions
    metrics = engine.metrics
    assert metrics.preemptions == reference.preemptions
    assert metrics.inter_token_latency.counts == bucketed(metrics.inter_token_latency, reference.gaps)
    assert metrics.inter_token_latency.total == pytest.approx(sum(reference.gaps))
    steps = list(reference.tokens_of_steps.elements())
    assert metrics.iteration_tokens.counts == bucketed(metrics.iteration_tokens, steps)
    assert metrics.iteration_tokens.total == sum(steps)


@settings(deadline=None)
@given(worlds(), st.lists(st.floats(0, 10), max_size=30))
def test_it_does_not_matter_how_often_the_engine_is_looked_at(
    world: tuple[Profile, list[Request]], chops: list[float]
) -> None:
    profile, requests = world
    _, at_once = run(profile, requests)
    _, chopped = run(profile, requests, chops=chops)
    whole, pieces = finished_by_identity(at_once), finished_by_identity(chopped)
    for identity, event in whole.items():
        assert pieces[identity].time == pytest.approx(event.time, rel=1e-9)
        assert pieces[identity].preemptions == event.preemptions


@settings(deadline=None)
@given(worlds(), st.lists(st.floats(0, 10), max_size=30))
def test_requests_are_neither_lost_nor_made(world: tuple[Profile, list[Request]], chops: list[float]) -> None:
    profile, requests = world
    engine = Engine(profile)
    submitted, done = 0, 0
    stops = [(request.arrival_s, request) for request in requests] + [(time, None) for time in chops]
    for time, request in sorted(stops, key=lambda stop: stop[0]):
        done += sum(isinstance(event, Finished) for event in engine.advance(time))
        if request is not None:
            engine.submit(request, time)
            submitted += 1
        assert engine.running + engine.waiting + done == submitted
        assert engine.running <= profile.max_num_seqs
        assert 0 <= engine.kv_cache_usage <= 1
    events = engine.advance(1e6)
    assert done + sum(isinstance(event, Finished) for event in events) == len(requests)
    assert engine.outstanding == 0
    assert engine.kv_cache_usage == 0
    assert engine.metrics.generation_tokens == sum(request.output_tokens for request in requests)
    assert engine.metrics.prompt_tokens == sum(request.prompt_tokens for request in requests)
    assert engine.metrics.time_to_first_token.count == len(requests)
    assert engine.metrics.e2e_latency.count == len(requests)


@settings(deadline=None)
@given(worlds(), st.floats(0, 5))
def test_an_aborted_engine_gives_back_its_requests_and_works_on(
    world: tuple[Profile, list[Request]], time: float
) -> None:
    profile, requests = world
    engine = Engine(profile)
    submitted = [request for request in requests if request.arrival_s <= time]
    for request in submitted:
        engine.submit(request, request.arrival_s)
    done = [event.request for event in engine.advance(time) if isinstance(event, Finished)]
    dropped = engine.abort()
    assert sorted(map(id, done + dropped)) == sorted(map(id, submitted))
    assert engine.outstanding == 0
    assert engine.kv_cache_usage == 0
    engine.submit(requests[0], time)
    assert any(isinstance(event, Finished) for event in engine.advance(1e6))


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    requests = [Request(number / 2, 500, 200) for number in range(20)]

    def ends(seed: int) -> list[float]:
        engine = Engine(TIME_BOUND, seed=seed)
        for request in requests:
            engine.submit(request, request.arrival_s)
        return [event.time for event in engine.advance(1000)]

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)


def test_a_step_has_the_duration_that_its_parts_add_up_to() -> None:
    profile = replace(TIME_BOUND, step_time=replace(ODD, jitter=0.0), max_num_batched_tokens=300)
    engine = Engine(profile)
    engine.submit(Request(0.0, 400, 3), 0.0)
    first, finished = engine.advance(100)
    # The prompt takes two chunks: 300 tokens, then 100 that attend to the 300 before them as well.
    prompt = 2 * (ODD.overhead_s + ODD.per_sequence_s) + 400 * ODD.per_prompt_token_s
    prompt += ODD.per_attention_pair_s * 400 * 401 / 2
    assert isinstance(first, FirstToken)
    assert first.time == pytest.approx(prompt)
    decode = 2 * (ODD.overhead_s + ODD.per_sequence_s) + ODD.per_kv_token_s * (400 + 401)
    assert finished.time == pytest.approx(prompt + decode)
    assert engine.metrics.busy_s == pytest.approx(prompt + decode)


def test_the_request_admitted_last_is_preempted_when_blocks_run_out_and_still_gets_all_its_tokens() -> None:
    profile = Profile("tight", ODD, num_gpu_blocks=16, block_size=4, max_num_seqs=4)
    early, late = Request(0.0, 20, 30), Request(0.0, 20, 30)
    engine, events = run(profile, [early, late])
    finished = finished_by_identity(events)
    assert finished[id(early)].preemptions == 0
    assert finished[id(late)].preemptions > 0
    assert finished[id(early)].time < finished[id(late)].time
    assert engine.metrics.preemptions == finished[id(late)].preemptions
    assert engine.metrics.generation_tokens == 60
    # A token that comes after a preemption counts the whole wait: no gap is left out.
    gaps = sum(event.time - event.first_token for event in finished.values())
    assert engine.metrics.inter_token_latency.total == pytest.approx(gaps)
    assert sum(isinstance(event, FirstToken) for event in events) == 2


def test_a_full_batch_makes_the_others_wait_in_order() -> None:
    profile = replace(TIME_BOUND, max_num_seqs=2)
    requests = [Request(0.0, 100, 10 * (number + 1)) for number in range(4)]
    engine = Engine(profile)
    for request in requests:
        engine.submit(request, 0.0)
    engine.advance(0.05)
    assert (engine.running, engine.waiting) == (2, 2)
    firsts = [event.request for event in engine.advance(1000) if isinstance(event, FirstToken)]
    assert [id(request) for request in firsts] == [id(request) for request in requests][2:]


def test_a_prompt_found_in_the_prefix_cache_is_not_computed_again() -> None:
    cold, warm = Engine(TIME_BOUND), Engine(TIME_BOUND)
    cold.submit(Request(0.0, 4000, 1), 0.0)
    warm.submit(Request(0.0, 4000, 1, cached_tokens=4000), 0.0)
    (cold_first, _), (warm_first, _) = cold.advance(100), warm.advance(100)
    assert warm_first.time < cold_first.time / 5
    metrics = warm.metrics
    assert (metrics.prefix_cache_queries, metrics.prefix_cache_hits) == (4000, 3984)
    assert metrics.request_computed_tokens.total == 16
    assert (metrics.prompt_tokens, metrics.cached_prompt_tokens) == (4000, 3984)


def test_histograms_of_a_request_are_written_when_it_gets_its_first_token_and_when_it_ends() -> None:
    engine = Engine(MEMORY_BOUND)
    metrics = engine.metrics
    engine.submit(Request(0.0, 1000, 500), 0.0)
    engine.advance(0.001)
    assert (metrics.time_to_first_token.count, metrics.e2e_latency.count) == (0, 0)
    assert metrics.prefix_cache_queries == 1000
    engine.advance(1.0)
    assert (metrics.time_to_first_token.count, metrics.e2e_latency.count) == (1, 0)
    assert metrics.queue_time.count == 0
    engine.advance(100.0)
    (finished_count,) = {
        histogram.count
        for histogram in (
            metrics.e2e_latency,
            metrics.queue_time,
            metrics.prefill_time,
            metrics.decode_time,
            metrics.inference_time,
            metrics.time_per_output_token,
            metrics.request_generation_tokens,
        )
    }
    assert finished_count == metrics.finished == 1
    parts = metrics.queue_time.total + metrics.prefill_time.total + metrics.decode_time.total
    assert metrics.e2e_latency.total == pytest.approx(parts)


def test_a_request_that_comes_during_a_step_takes_part_in_the_next_one() -> None:
    profile = replace(TIME_BOUND, step_time=replace(TIME_BOUND.step_time, jitter=0.0))
    engine = Engine(profile)
    engine.submit(Request(0.0, 4000, 1), 0.0)
    (first, _) = engine.advance(100)
    engine = Engine(profile)
    engine.submit(Request(0.0, 4000, 1), 0.0)
    engine.submit(Request(0.1, 10, 1), 0.1)
    firsts = [event for event in engine.advance(100) if isinstance(event, FirstToken)]
    assert firsts[0].time == first.time
    assert firsts[1].time > first.time


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_gpu_blocks": 0}, "num_gpu_blocks is 0; it must be at least 1"),
        ({"max_num_batched_tokens": 256}, r"max_num_batched_tokens is 256; it must be above max_num_seqs \(256\)"),
    ],
)
def test_a_profile_that_cannot_work_is_refused(change: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(TIME_BOUND, **change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt_tokens": 0}, "prompt_tokens is 0"),
        ({"output_tokens": -3}, "output_tokens is -3"),
        ({"cached_tokens": 11}, r"cached_tokens is 11; it must lie between 0 and prompt_tokens \(10\)"),
    ],
)
def test_an_impossible_request_is_refused(change: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(Request(0.0, 10, 10), **change)


def test_a_request_that_no_cache_could_hold_is_refused() -> None:
    engine = Engine(MEMORY_BOUND)
    with pytest.raises(ValueError, match="this engine takes at most 131072"):
        engine.submit(Request(0.0, 131_072, 1), 0.0)
    assert engine.outstanding == 0


def test_time_does_not_go_back() -> None:
    engine = Engine(TIME_BOUND)
    engine.advance(10.0)
    with pytest.raises(ValueError, match=r"time 9\.0 has passed"):
        engine.advance(9.0)
