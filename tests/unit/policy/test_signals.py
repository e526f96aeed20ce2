"""Each demand signal: what it asks for, and when it does not know."""

from __future__ import annotations

import pytest

from scaler.policy.capacity import Capacity, Service, learn, service
from scaler.policy.observation import Load
from scaler.policy.rule_values import rule_values
from scaler.policy.signals import work
from scaler.policy.signals.demand import Demand
from scaler.policy.signals.queue import queue_seconds, service_rate
from tests.unit.policy.world import first, see, settings, text_of


def demand_of(metadata: dict[str, object], **seen: object) -> dict[str, float]:
    return dict(first(settings(**metadata), see(**seen)).demand)  # type: ignore[arg-type]


ONGOING = [
    ({"waiting": 0, "running": 0}, 0.0),
    ({"waiting": 0, "running": 12}, 1.0),
    ({"waiting": 30, "running": 30}, 5.0),
    ({"waiting": 0.5, "running": 5.5}, 0.5),
]


@pytest.mark.parametrize(("seen", "expected"), ONGOING)
def test_ongoing_requests_are_waiting_and_running_over_the_target(seen: dict[str, float], expected: float) -> None:
    assert demand_of({"targetOngoingRequests": 12}, **seen) == {"ongoing requests": expected}


@pytest.mark.parametrize("seen", [{"waiting": None}, {"running": None}])
def test_ongoing_requests_are_unknown_when_a_part_is(seen: dict[str, None]) -> None:
    assert demand_of({"targetOngoingRequests": 12}, **{"waiting": 50, "running": 50, **seen}) == {}


QUEUE_SECONDS = [
    (Load(waiting=0), 0.0),
    (Load(waiting=20, completion_rate=4.0), 5.0),
    (Load(waiting=20, completion_rate=0.0, generation_token_rate=400.0, tokens_per_request=100.0), 5.0),
    (Load(waiting=20, completion_rate=2.0, generation_token_rate=400.0, tokens_per_request=100.0), 5.0),
    (Load(waiting=20, completion_rate=8.0, generation_token_rate=400.0, tokens_per_request=100.0), 2.5),
    (Load(waiting=20, completion_rate=0.0), None),
    (Load(waiting=20, generation_token_rate=400.0, tokens_per_request=0.0), None),
    (Load(waiting=20), None),
    (Load(waiting=None, completion_rate=4.0), None),
]


@pytest.mark.parametrize(("load", "expected"), QUEUE_SECONDS)
def test_queue_seconds_are_the_queue_over_the_service_rate(load: Load, expected: float | None) -> None:
    assert queue_seconds(load) == expected


def test_long_generations_that_do_not_finish_still_show_a_service_rate() -> None:
    assert service_rate(Load(completion_rate=0.0, generation_token_rate=1000.0, tokens_per_request=500.0)) == 2.0


def test_queue_seconds_ask_in_proportion_to_what_is_too_long() -> None:
    target: dict[str, object] = {"targetQueueSeconds": 5, "targetOngoingRequests": 1000}
    for waiting, expected in ((40, 4 + 4 * 1), (100, 4 + 4 * 4), (20, 0.0)):
        asked = demand_of(target, ready=4, waiting=waiting, completion_rate=4.0)
        assert asked["queue seconds"] == expected


def test_queue_seconds_never_say_how_few_would_do() -> None:
    """A short queue says nothing about how many replicas are needed: what replicas do decides beside it."""
    asked = demand_of({"targetQueueSeconds": 5}, ready=4, running=32, most_running=8.0)
    assert asked == {"work": 4.0, "queue seconds": 0.0}


@pytest.mark.parametrize(("use", "expected"), [(0.0, 0.0), (0.4, 2.0), (0.8, 4.0), (1.0, 5.0)])
def test_kv_cache_asks_for_the_use_that_one_replica_should_have(use: float, expected: float) -> None:
    asked = demand_of({"targetKvCacheUsage": 0.8}, ready=4, kv_cache_usage=use)
    assert asked["KV cache"] == pytest.approx(expected)


TOKENS = [
    ({"prompt_token_rate": 1500.0, "generation_token_rate": 1000.0}, 1.0),
    ({"prompt_token_rate": 0.0, "generation_token_rate": 0.0}, 0.0),
    # full replicas cannot show more tokens: twice the arrivals ask for twice the replicas
    (
        {
            "prompt_token_rate": 1500.0,
            "generation_token_rate": 1000.0,
            "waiting": 9,
            "arrival_rate": 4.0,
            "completion_rate": 2.0,
        },
        2.0,
    ),
    # without a queue, arrivals above completions are only requests that still run
    (
        {
            "prompt_token_rate": 1500.0,
            "generation_token_rate": 1000.0,
            "waiting": 0,
            "arrival_rate": 4.0,
            "completion_rate": 2.0,
        },
        1.0,
    ),
]


@pytest.mark.parametrize(("seen", "expected"), TOKENS)
def test_tokens_ask_by_what_full_replicas_would_have_to_do(seen: dict[str, float], expected: float) -> None:
    assert demand_of({"targetTokensPerSecond": 2500}, **seen) == {"tokens": expected}


@pytest.mark.parametrize("seen", [{"prompt_token_rate": 1.0}, {"generation_token_rate": 1.0}, {}])
def test_tokens_are_unknown_when_a_rate_is(seen: dict[str, float]) -> None:
    assert demand_of({"targetTokensPerSecond": 2500}, **seen) == {}


def test_the_highest_signal_counts_and_is_the_reason() -> None:
    both = settings(targetOngoingRequests=10, targetKvCacheUsage=0.8)
    decision = first(both, see(ready=4, running=20, kv_cache_usage=0.96))
    assert decision.desired == 5
    assert decision.reason.startswith("signals: KV cache")
    decision = first(both, see(ready=4, running=90, kv_cache_usage=0.96))
    assert decision.desired == 9
    assert decision.reason.startswith("signals: ongoing requests")


def test_an_absurd_demand_is_unknown_and_not_a_count() -> None:
    for running in (1e300, -50.0):
        decision = first(settings(targetOngoingRequests=10), see(ready=4, running=running))
        assert decision.desired == 4
        assert "absurd" in text_of(decision)


UTILIZATION = [
    ("slots", {"running": 32.0, "kv_cache_usage": 0.9}, 0.5),
    ("kv", {"running": 32.0, "kv_cache_usage": 0.9}, 0.9),
    ("gpu", {"running": 32.0, "gpu_utilization": 0.7}, 0.7),
    ("gpu", {"running": 32.0}, None),
    ("auto", {"running": 32.0, "kv_cache_usage": 0.9}, 0.9),
    ("auto", {"running": 32.0, "kv_cache_usage": 0.1}, 0.5),
    ("auto", {"running": 32.0}, 0.5),
    ("auto", {"running": None}, None),
    ("slots", {"running": 99.0}, 1.0),
]


@pytest.mark.parametrize(("kind", "seen", "expected"), UTILIZATION)
def test_utilization_is_what_the_settings_say_it_is(kind: str, seen: dict[str, float], expected: float | None) -> None:
    chosen = settings(utilization=kind, maxNumSeqs=16)
    assert rule_values(chosen, Capacity(), see(ready=4, **seen))["utilization"] == expected  # type: ignore[arg-type]


def test_utilization_by_slots_is_unknown_until_slots_are_learned_or_given() -> None:
    seen = see(ready=4, running=32)
    assert rule_values(settings(utilization="slots"), Capacity(), seen)["utilization"] is None
    assert rule_values(settings(utilization="slots"), Capacity(slots=16), seen)["utilization"] == 0.5


PROMPT = settings(maxNumSeqs=20, ttftSlo="2s")
"""Eighteen of twenty slots are to be used, and a queue of two seconds is borne."""
STEADY: dict[str, float] = {
    "running": 40.0,
    "most_running": 10.0,
    "generation_token_rate": 1000.0,
    "arrival_rate": 5.0,
    "completion_rate": 5.0,
}
"""Four replicas that run ten requests each, of two hundred tokens, at 40 ms a token: each takes eight seconds."""


def worked() -> Capacity:
    capacity = Capacity()
    for at in range(120):
        capacity = learn(PROMPT, capacity, see(float(at), **STEADY))
    return capacity


def given() -> Service:
    found = service(PROMPT, worked())
    assert found is not None
    return found


def work_of(**seen: float | None) -> Demand:
    demand = work.demand(PROMPT, worked(), see(**{**STEADY, **seen}))  # type: ignore[arg-type]
    assert demand is not None
    return demand


def test_work_is_arrivals_over_what_a_replica_serves() -> None:
    for arrivals in (0.0, 5.0, 50.0):
        demand = work_of(arrival_rate=arrivals)
        assert demand.replicas == pytest.approx(arrivals / given().rate)
        assert demand.backlog == 0.0
        assert demand.per_arrival_rate == pytest.approx(1 / given().rate)
    assert "90% of its 20 slots" in demand.text


def test_work_does_not_grow_with_what_runs_within_its_bounds() -> None:
    assert work_of(running=4 * 17.0).replicas == work_of(running=4.0).replicas


def test_a_queue_that_is_begun_within_the_objective_asks_for_nothing() -> None:
    bearable = 4 * (given().running + 2.0 * given().rate)
    assert work_of(waiting=bearable - 40.0).backlog == 0.0
    more = work_of(waiting=bearable - 40.0 + 30.0)
    assert more.backlog == pytest.approx(30.0 / (60 * given().rate))
    assert more.replicas == pytest.approx(5.0 / given().rate + more.backlog)
    assert "too many that are there" in more.text


@pytest.mark.parametrize("waiting", [1e3, 1e6, 1e9])
def test_a_backlog_never_asks_for_more_replicas_than_are_there(waiting: float) -> None:
    assert work_of(waiting=waiting).backlog <= 4.0
    assert work_of(waiting=1e9).backlog == 4.0


@pytest.mark.parametrize(
    "mute",
    [{"arrival_rate": None}, {"arrival_rate": None, "generation_token_rate": None}],
    ids=["no arrivals told", "neither arrivals nor tokens"],
)
def test_work_of_an_engine_that_counts_no_arrivals_goes_by_ongoing_requests(mute: dict[str, None]) -> None:
    demand = work_of(waiting=5.0, **mute)
    assert demand.replicas == pytest.approx(45 / 18)
    assert demand.backlog == pytest.approx(5 / 18)
    assert demand.per_arrival_rate is None


def test_work_goes_by_ongoing_requests_until_it_is_known_what_a_replica_serves() -> None:
    demand = work.demand(PROMPT, Capacity(), see(waiting=5.0, **STEADY))
    assert demand is not None
    assert demand.replicas == pytest.approx(45 / 18)
    assert demand.per_arrival_rate is None


@pytest.mark.parametrize("unknown", [{"waiting": None}, {"running": None}, {"running": None, "arrival_rate": None}])
def test_work_that_is_unknown_is_not_none_at_all(unknown: dict[str, None]) -> None:
    seen = see(**{**STEADY, "waiting": 3.0, **unknown})  # type: ignore[arg-type]
    for capacity in (Capacity(), worked()):
        assert work.demand(PROMPT, capacity, seen) is None
