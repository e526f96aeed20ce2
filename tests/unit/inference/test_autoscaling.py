"""The policy as Ray Serve's hook: what Serve tells becomes an observation, and the decision is the policy's own."""

from __future__ import annotations

import logging
import math
import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from inference.autoscaling import Policy
from inference.replica_load import report
from scaler.policy import Latency, Load, State, decide
from scaler.policy.presets import PRESETS
from tests.unit.inference.serve_context import Moment
from tests.unit.policy.world import preset, see

PLAIN = {"targetOngoingRequests": 2, "lookAhead": 0, "downscaleDelay": 0}


def test_a_moment_of_serve_becomes_an_observation() -> None:
    policy = Policy(**PLAIN)
    moment = Moment(
        current_time=50.0,
        current_num_replicas=2,
        target_num_replicas=3,
        total_num_requests=11.0,
        total_queued_requests=4.0,
        capacity_adjusted_max_replicas=7,
    )
    seen = policy.observe(moment)
    assert seen == see(
        50.0,
        utc=50.0,
        waiting=4.0,
        running=7.0,
        ready=2,
        starting=1,
        minimum=1,
        maximum=7,
        most_running=3.5,
        full_running=3.5,
    )


def test_it_is_asked_ten_times_a_second_and_decides_once_an_interval() -> None:
    policy = Policy(**PLAIN, metricsInterval="1s")
    moment = Moment(total_num_requests=4.0)
    assert policy(moment) == (2, {})
    moment.total_num_requests = 8.0
    for moment.current_time in (0.1, 0.5, 0.99):
        assert policy(moment)[0] == 2
    moment.current_time = 1.0
    assert policy(moment)[0] == 4


@pytest.mark.parametrize("name", PRESETS)
@given(seed=some.integers(0, 2**32))
def test_inside_serve_it_decides_what_it_decides_outside(name: str, seed: int) -> None:
    source = random.Random(seed)
    keys = preset(name)
    policy, state = Policy(policy=name), None
    assert policy.settings == keys
    running, target = 2, 2
    for i in range(60):
        queued, busy = source.choice((0.0, 3.0, 40.0)), source.uniform(0, 20)
        time = 1_000_000 + i * keys.metrics_interval_s
        moment = Moment(time, running, target, queued + busy, queued)
        target, kept = policy(moment)
        state, decision = decide(keys, state, policy.observe(moment))
        assert (target, kept) == (decision.desired, {})
        running = min(target, running + source.randrange(2)) if target > running else target


def test_what_replicas_report_counts_where_they_do_and_one_without_a_report_starts() -> None:
    latency = Latency(0.1, 0.2, 0.3, 0.4, 0.3)
    slow = Latency(0.5, 0.6, 0.7, 0.8, 0.7)
    busy = Load(
        known=1, waiting=3.0, running=8.0, kv_cache_usage=0.9, arrival_rate=2.0, completion_rate=3.0,
        latency={"ttft": latency},
    )  # fmt: skip
    calm = Load(
        known=1, waiting=0.0, running=2.0, kv_cache_usage=0.5, arrival_rate=1.0, completion_rate=1.0,
        latency={"ttft": slow},
    )  # fmt: skip
    moment = Moment(
        current_num_replicas=3,
        target_num_replicas=3,
        total_num_requests=18.0,
        total_queued_requests=9.0,  # of which 4 have meanwhile reached their replica
        reports={"a": report(busy), "b": report(calm)},
    )
    seen = Policy().observe(moment)
    load, replicas = seen.load, seen.replicas
    assert (load.known, replicas.ready, replicas.starting) == (2, 2, 1)
    assert (load.waiting, load.running, load.most_running) == (8.0, 10.0, 8.0)
    assert (load.arrival_rate, load.completion_rate) == (3.0, 4.0)
    assert load.kv_cache_usage == pytest.approx(0.7)
    assert load.generation_token_rate is None
    assert load.latency["ttft"].p95 == pytest.approx(0.75 * 0.3 + 0.25 * 0.7)
    assert load.latency["ttft"].worst_p95 == 0.7


def test_a_start_is_measured_from_the_target_to_the_replica() -> None:
    policy = Policy(**PLAIN, metricsInterval="100ms", lookBackPeriod="10s")
    for time, target, running in ((0.0, 1, 1), (10.0, 3, 1), (40.0, 3, 2), (50.0, 3, 3), (51.0, 3, 3)):
        moment = Moment(time, running, target, 6.0)
        policy(moment)
    start_up = policy.observe(moment).start_up
    assert start_up is not None
    assert (start_up.median, start_up.p90) == (40.0, 40.0)


def test_a_start_that_was_taken_back_is_none() -> None:
    policy = Policy(**PLAIN, metricsInterval="100ms", lookBackPeriod="10s")
    for time, target, running in ((0.0, 1, 1), (10.0, 3, 1), (20.0, 1, 1), (100.0, 2, 1), (130.0, 2, 2)):
        moment = Moment(time, running, target, 2.0)
        policy(moment)
    start_up = policy.observe(moment).start_up
    assert start_up is not None
    assert start_up.p90 == 30.0


def test_wrong_keys_are_told_and_keep_the_count(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        policy = Policy(targetOngoingReqests=4, downscaleDelay="soon")
    assert "did you mean targetOngoingRequests?" in caplog.text
    assert "downscaleDelay: 'soon' is wrong" in caplog.text
    assert policy(Moment(target_num_replicas=5, total_num_requests=900.0)) == (5, {})


def test_an_unforeseen_fault_keeps_the_count_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    policy = Policy(**PLAIN)
    broken = Moment(target_num_replicas=5, config=None, total_num_requests="many")  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        for broken.current_time in (0.0, 1.0, 2.0):
            assert policy(broken) == (5, {})
    assert len(caplog.records) == 1
    assert policy(Moment(3.0, 5, 5, 20.0))[0] == 10


def test_what_cannot_be_looked_at_for_a_warning_keeps_the_count() -> None:
    without_config = Moment(target_num_replicas=5)
    del without_config.config
    assert Policy(**PLAIN)(without_config) == (5, {})


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("what", ["total_num_requests", "total_queued_requests"])
def test_what_is_no_number_is_unknown_and_lowers_nothing(what: str, odd: float) -> None:
    policy = Policy(**PLAIN)
    assert policy(Moment(0.0, 4, 4, total_num_requests=8.0))[0] == 4
    moment = Moment(1.0, 4, 4, total_num_requests=0.0)
    setattr(moment, what, odd)
    assert policy.observe(moment).load.running is None
    assert policy(moment)[0] == 4


def test_a_replica_that_reports_what_is_no_number_has_not_reported() -> None:
    latency = {f"ttft.{quantile}": 0.5 for quantile in ("p50", "p90", "p95", "p99", "worst_p95")}
    reports = {
        "good": {"waiting": 1.0, "running": 2.0, **latency},
        "no number": {"waiting": 0.0, "running": math.nan, **latency},
        "part of it": {"waiting": 0.0, "running": 3.0, **latency, "ttft.p50": math.inf, "kv_cache_usage": math.nan},
    }
    load = Policy().observe(Moment(current_num_replicas=3, reports=reports)).load
    assert (load.known, load.waiting, load.running, load.kv_cache_usage) == (2, 1.0, 5.0, None)
    assert load.latency["ttft"].worst_p95 == 0.5


def test_without_a_time_from_serve_it_goes_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, moment = Policy(**PLAIN), Moment(None, total_num_requests=4.0)
    for now, requests, count in ((100.0, 4.0, 2), (101.0, 8.0, 4)):
        monkeypatch.setattr("inference.autoscaling.time.time", lambda now=now: now)
        moment.total_num_requests = requests
        assert policy(moment)[0] == count


def test_what_serve_does_to_the_answer_is_told(caplog: pytest.LogCaptureFixture) -> None:
    config = SimpleNamespace(upscale_delay_s=30.0, downscale_delay_s=0.0, upscaling_factor=None)
    with caplog.at_level(logging.WARNING):
        Policy(**PLAIN)(Moment(config=config))
    assert [record.message for record in caplog.records] == [
        "autoscaling_config of llm/Engine: upscale_delay_s 30 comes on top of what the policy does; right is 0"
    ]


def test_it_goes_on_from_serves_target_when_the_controller_was_started_anew() -> None:
    policy = Policy(targetOngoingRequests=2, lookAhead=0)  # with a downscale delay, from when it began
    assert policy(Moment(current_num_replicas=0, target_num_replicas=6))[0] == 6
    assert policy(Moment(2.0, current_num_replicas=6, target_num_replicas=6, total_num_requests=2.0))[0] == 6


def test_the_state_of_one_deployment_is_not_anothers() -> None:
    first, second = Policy(**PLAIN), Policy(**PLAIN)
    assert first(Moment(total_num_requests=20.0))[0] == 10
    assert second(Moment(total_num_requests=2.0))[0] == 1
    assert isinstance(first._state, State)
