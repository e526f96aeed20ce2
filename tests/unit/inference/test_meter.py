"""A replica's own load: rates, quantiles and gauges, and nothing that was not seen."""

from __future__ import annotations

import tracemalloc

import pytest

from inference.meter import Gauges, Meter


def test_rates_and_quantiles_are_those_of_the_look_back() -> None:
    meter = Meter(look_back_s=10.0)
    for second in range(20):
        meter.arrived(float(second))
        meter.first_token(second + 0.2, 0.2 if second < 15 else 0.4)
        meter.finished(second + 0.5, 0.5, tokens=10, token_s=0.03)
    load = meter.load(20.0, waiting=3, gauges=Gauges(1.0, 4.0, 0.5), running=5)
    assert (load.waiting, load.running, load.kv_cache_usage) == (4.0, 4.0, 0.5)
    assert (load.arrival_rate, load.completion_rate) == (1.0, 1.0)
    assert load.generation_token_rate == pytest.approx(10.0)
    assert load.tokens_per_request == 10.0
    assert (load.latency["ttft"].p50, load.latency["ttft"].p95) == (0.2, 0.4)
    assert load.latency["tpot"].worst_p95 == 0.03


def test_what_was_never_seen_is_unknown() -> None:
    load = Meter().load(100.0, waiting=0, gauges=Gauges(), running=0)
    assert (load.waiting, load.running) == (0.0, 0.0)
    assert load.arrival_rate is load.completion_rate is load.generation_token_rate is load.kv_cache_usage is None
    assert load.latency == {}


def test_one_answer_of_unknown_length_makes_the_token_rate_unknown() -> None:
    meter = Meter()
    meter.arrived(0.0)
    meter.finished(1.0, 1.0, tokens=10, token_s=0.1)
    meter.finished(1.0, 1.0, tokens=None, token_s=None)
    load = meter.load(2.0, waiting=0, gauges=Gauges(), running=0)
    assert load.generation_token_rate is None
    assert load.completion_rate == 1.0


def test_requests_in_the_engine_are_counted_where_it_does_not_count_them() -> None:
    load = Meter().load(0.0, waiting=2, gauges=Gauges(), running=7)
    assert (load.waiting, load.running, load.full_running) == (2.0, 7.0, 7.0)


def test_a_queue_that_is_told_longer_than_what_is_in_the_engine_leaves_nothing_running() -> None:
    load = Meter().load(0.0, waiting=0, gauges=Gauges(waiting=9.0), running=7)
    assert (load.waiting, load.running) == (9.0, 0.0)


def test_what_is_over_is_forgotten_although_nobody_asks_for_the_load() -> None:
    meter = Meter(look_back_s=10.0)

    def remembered(requests: range) -> int:
        tracemalloc.start()
        for second in requests:
            meter.arrived(float(second))
            meter.first_token(float(second), 0.2)
            meter.finished(float(second), 0.5, tokens=10, token_s=0.03)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return held

    remembered(range(100))
    assert remembered(range(100, 10_100)) < 50_000
