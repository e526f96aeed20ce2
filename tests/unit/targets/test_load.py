"""Samples become load: sums, rates, quantiles; and what is unknown stays so."""

from __future__ import annotations

import math

import pytest

from scaler.exposition import ENGINES
from scaler.exposition.sample import Histogram, Sample
from scaler.sources.source import Unknown
from scaler.targets.load import LoadMeter, quantile
from tests.unit.targets.world import page


def test_gauges_add_up_over_known_pods_and_the_others_are_named() -> None:
    load = LoadMeter(30).measure(0, {"a": page(3, 8), "b": page(1, 4), "c": Unknown("timed out")})
    assert (load.waiting, load.running, load.known) == (4, 12, 2)
    assert load.unknown == {"c": "timed out"}


def test_no_pod_is_not_an_empty_queue() -> None:
    load = LoadMeter(30).measure(0, {})
    assert load.waiting is None
    assert load.running is None


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    load = LoadMeter(30).measure(0, {"a": page(3, 8), "b": Sample(waiting=None, running=4.0)})
    assert load.waiting is None
    assert load.running == 12


def test_rates_are_increases_over_time_summed_over_pods() -> None:
    meter = LoadMeter(10)
    for time in range(11):
        load = meter.measure(
            time,
            {name: page(0, 2, requests_finished=2.0 * time, generation_tokens=50.0 * time) for name in "ab"},
        )
    assert load.completion_rate == pytest.approx(4.0)
    assert load.generation_token_rate == pytest.approx(100.0)
    assert load.arrival_rate == pytest.approx(4.0)
    assert load.tokens_per_request == pytest.approx(25.0)


def test_arrivals_are_what_finished_plus_what_piled_up() -> None:
    meter = LoadMeter(10)
    meter.measure(0, {"a": page(0, 4, requests_finished=100)})
    load = meter.measure(10, {"a": page(15, 4, requests_finished=110)})
    assert load.arrival_rate == pytest.approx(2.5)


def test_a_counter_that_fell_began_anew() -> None:
    meter = LoadMeter(10)
    meter.measure(0, {"a": page(0, 0, generation_tokens=1_000_000)})
    load = meter.measure(10, {"a": page(0, 0, generation_tokens=500)})
    assert load.generation_token_rate == pytest.approx(50.0)


def test_a_new_pod_has_no_rate_yet_and_spoils_none() -> None:
    meter = LoadMeter(10)
    meter.measure(0, {"a": page(0, 0, generation_tokens=0)})
    load = meter.measure(10, {"a": page(0, 0, generation_tokens=100), "new": page(0, 0, generation_tokens=9e9)})
    assert load.generation_token_rate == pytest.approx(10.0)


def test_a_rate_follows_the_look_back_not_the_whole_past() -> None:
    meter = LoadMeter(10)
    for time in range(100):
        load = meter.measure(time, {"a": page(0, 0, generation_tokens=1000.0 * min(time, 50))})
    assert load.generation_token_rate == 0.0


def test_one_waiting_request_does_not_make_a_pod_full() -> None:
    meter = LoadMeter(10)
    assert meter.measure(0, {"a": page(1, 5)}).full_running is None
    assert meter.measure(1, {"a": page(6, 5), "b": page(0, 9)}).full_running == 5


def test_mean_length_is_not_that_of_the_few_who_finish_first() -> None:
    meter = LoadMeter(10)
    meter.measure(0, {"a": page(0, 8, requests_finished=1000, generation_tokens=200_000)})
    load = meter.measure(5, {"a": page(0, 8, requests_finished=1003, generation_tokens=200_030)})
    assert load.tokens_per_request == pytest.approx(199.4, abs=0.1)


def _ttft(*counts: float) -> Histogram:
    return Histogram((0.5, 1.0, 2.0, math.inf), counts, 0.0)


def test_quantiles_are_of_the_look_back_over_all_pods_and_the_worst_pod_is_known() -> None:
    meter = LoadMeter(10)

    def pages(fast: Histogram, slow: Histogram) -> dict[str, Sample]:
        return {
            "fast": Sample(waiting=0.0, running=0.0, histograms={"ttft": fast}),
            "slow": Sample(waiting=0.0, running=0.0, histograms={"ttft": slow}),
        }

    meter.measure(0, pages(_ttft(500, 500, 500, 500), _ttft(0, 0, 0, 900)))
    load = meter.measure(10, pages(_ttft(590, 590, 590, 590), _ttft(0, 0, 10, 910)))
    ttft = load.latency["ttft"]
    assert ttft.p50 == pytest.approx(0.5 * 50 / 90)
    assert ttft.p95 == pytest.approx(1.5)
    assert ttft.worst_p95 == pytest.approx(1.95)


def test_no_observation_in_the_look_back_is_no_latency() -> None:
    meter = LoadMeter(10)
    sample = Sample(waiting=0.0, running=0.0, histograms={"ttft": _ttft(5, 6, 7, 8)})
    meter.measure(0, {"a": sample})
    assert meter.measure(10, {"a": sample}).latency == {}


@pytest.mark.parametrize(
    ("q", "counts", "expected"),
    [
        (0.5, (10, 10, 10, 10), 0.25),
        (0.5, (0, 10, 10, 10), 0.75),
        (0.99, (0, 0, 0, 10), 2.0),
        (0.0, (4, 4, 4, 4), 0.0),
        (1.0, (1, 2, 2, 2), 1.0),
    ],
)
def test_quantile_is_linear_within_its_bucket(q: float, counts: tuple[float, ...], expected: float) -> None:
    assert quantile(q, (0.5, 1.0, 2.0, math.inf), counts) == pytest.approx(expected)


def test_the_queue_of_a_ray_application_is_the_sum_over_the_nodes_that_route() -> None:
    labels = 'application="llm",deployment="Engine"'
    replica = f'ray_serve_replica_processing_queries{{{labels},replica="r",WorkerId="r"}} 4\n'
    queue = f'ray_serve_deployment_queued_queries{{{labels},handle="h",WorkerId="p"}} 6\n'
    pages = {"a": replica + queue, "b": replica, "c": replica + queue}
    read = {pod: ENGINES["ray"].read(text.encode()) for pod, text in pages.items()}
    load = LoadMeter(30).measure(0, read)
    assert (load.waiting, load.running, load.known) == (12, 12, 3)
