"""Each demand signal: what it asks for, and when it does not know."""

from __future__ import annotations

import pytest

from scaler.policy.observation import Load
from scaler.policy.rule_values import rule_values
from scaler.policy.signals.queue import queue_seconds, service_rate
from scaler.policy.state import Capacity
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
    """A short queue says nothing about how many replicas are needed: learned capacity decides beside it."""
    asked = demand_of({"targetQueueSeconds": 5}, ready=4, running=32, most_running=8.0)
    assert asked == {"learned capacity": 4.0, "queue seconds": 0.0}


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
