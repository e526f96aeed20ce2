"""Each step from a demand to a count, on its own and where two of them meet."""

from __future__ import annotations

import random

import pytest

from scaler.policy import StartUp, Took
from tests.unit.policy.world import Tape, first, rules_said, see, settings, text_of


def tape(ready: int = 4, start_up: float = 0.0, **metadata: object) -> Tape:
    """A tape whose demand is `running` ÷ 10."""
    return Tape(settings(targetOngoingRequests=10, **metadata), ready=ready, start_up=start_up)


class TestSmoothing:
    def test_a_jump_arrives_by_the_factor_at_each_tick(self) -> None:
        run = tape(smoothingFactor=0.5)
        assert [run.tick(running=load) for load in (40, 80, 80, 80, 80)] == [4, 6, 7, 8, 8]
        run = tape(smoothingFactor=0.6)
        assert [run.tick(running=load) for load in (40, 140, 140)] == [4, 10, 13]  # 4 → 10 → 12.4

    def test_a_missed_tick_weighs_as_much_as_two_that_were_not(self) -> None:
        steady, missed = tape(smoothingFactor=0.5), tape(smoothingFactor=0.5)
        for run in (steady, missed):
            run.tick(running=40)
        steady.run(2, running=1000)
        assert missed.tick(2.0, running=1000) == steady.counts[-1]

    def test_a_factor_of_one_smooths_nothing(self) -> None:
        run = tape()
        assert [run.tick(running=load) for load in (40, 400, 10)] == [4, 40, 1]


class TestBurst:
    def test_a_burst_skips_delay_and_smoothing(self) -> None:
        run = tape(burstThreshold=0.5, upscaleDelay="60s", smoothingFactor=0.1)
        assert run.tick(running=40) == 4
        assert run.tick(running=90) == 9
        assert run.reason.startswith("burst: demand rises by 5 replicas/s")

    def test_a_burst_grows_at_least_by_the_upscaling_factor(self) -> None:
        run = tape(burstThreshold=0.5, upscalingFactor=3)
        run.tick(running=40)
        assert run.tick(running=65) == 12

    def test_only_a_burst_that_raises_is_delivered_at_once_and_only_where_asked(self) -> None:
        for delivery, load, at_once in (("direct", 90, True), ("direct", 45, False), ("hpa", 90, False)):
            run = tape(burstThreshold=0.5, delivery=delivery)
            run.tick(running=40)
            run.tick(running=load)
            assert run.decision is not None
            assert run.decision.at_once is at_once

    def test_a_slower_rise_waits_for_the_delay(self) -> None:
        run = tape(burstThreshold=0.5, upscaleDelay="60s")
        assert [run.tick(running=load) for load in (40, 55, 70, 85)] == [4, 4, 4, 4]

    def test_a_jump_below_the_present_count_is_no_burst(self) -> None:
        run = tape(ready=20, burstThreshold=0.1, downscaleDelay="10m")
        run.tick(running=10)
        assert run.tick(running=100) == 20
        assert "burst" not in rules_said(run.decision)

    def test_the_first_sight_of_load_is_no_burst(self) -> None:
        assert "burst" not in rules_said(
            first(settings(targetOngoingRequests=10, burstThreshold=0.1), see(running=900))
        )

    def test_two_ticks_close_together_do_not_make_a_burst(self) -> None:
        run = tape(burstThreshold=0.5, upscaleDelay="60s")
        run.tick(running=40)
        assert run.tick(0.05, running=52) == 4

    def test_pods_that_come_back_into_sight_are_no_burst(self) -> None:
        run = tape(burstThreshold=0.5, upscaleDelay="60s")
        run.run(5, running=44, ready=4)
        run.run(5, unknown=4, ready=4)
        assert run.tick(running=200, ready=4) == 4

    def test_a_burst_in_two_halves_is_answered_whole_although_the_first_half_is_on_the_way(self) -> None:
        run = tape(ready=2, start_up=60, burstThreshold=0.5)
        assert run.tick(running=20) == 2
        assert run.tick(running=20, waiting=180) == 20
        assert run.tick(running=20, waiting=380) == 40


class TestLookAhead:
    def ramp(self, run: Tape, seconds: int = 300, **seen: object) -> float:
        """Five even minutes at 4 replicas, then 0.2 replicas more a second; returns how many are needed at the end."""
        run.run(300, running=40, **seen)
        for i in range(seconds):
            run.tick(running=40 + 2.0 * i, **seen)
        return 4 + 0.2 * (seconds - 1)

    def test_a_ramp_is_carried_on_over_the_start_up_time_and_the_ten_seconds_of_delivery(self) -> None:
        run = tape(lookAhead="auto", start_up=50)
        now = self.ramp(run, start_up=50)
        assert run.counts[-1] == pytest.approx(now + 0.2 * (50 + 10), abs=2.5)
        assert "look_ahead" in rules_said(run.decision)

    def test_a_longer_start_up_time_looks_farther(self) -> None:
        ahead = []
        for start_up in (20.0, 80.0):
            run = tape(lookAhead="auto")
            now = self.ramp(run, start_up=start_up)
            ahead.append(run.counts[-1] - now)
        assert 0.2 * 30 - 1 <= ahead[0] <= 0.2 * 60
        assert ahead[1] >= 0.2 * 90 - 1

    def test_a_fixed_look_ahead_needs_no_measured_start_up(self) -> None:
        run = tape(lookAhead="60s")
        now = self.ramp(run)
        assert run.counts[-1] == pytest.approx(now + 0.2 * 60, abs=2.5)

    def test_before_a_start_was_measured_auto_takes_it_for_a_minute(self) -> None:
        unknown, known = tape(lookAhead="auto"), tape(lookAhead="auto")
        self.ramp(unknown)
        self.ramp(known, start_up=60)
        assert unknown.counts == known.counts

    def test_a_ramp_that_no_forecast_was_held_against_is_answered_as_it_is(self) -> None:
        run = tape(lookAhead="60s")
        for i in range(30):
            assert run.tick(running=40 + 10 * i) == 4 + i

    def test_what_a_configured_target_needs_now_is_there_whatever_is_forecast(self) -> None:
        run = tape(lookAhead="60s", ready=20, downscaleDelay="0")
        run.run(600, running=40)
        assert run.tick(running=150) == 15
        assert run.tick(running=40) < 15

    def test_a_burst_is_not_averaged_away_by_a_forecast(self) -> None:
        run = Tape(settings(burstThreshold=0.5, upscalingFactor=2, lookAhead="60s"), ready=4)
        seen = {"generation_token_rate": 400.0, "full_running": 10.0, "most_running": 10.0, "running": 40.0}
        run.run(300, arrival_rate=4.0, completion_rate=4.0, **seen)
        calm = run.counts[-1]
        assert run.tick(arrival_rate=40.0, completion_rate=4.0, **seen) >= 8 * calm  # ten times, less the margin

    def test_a_page_that_is_missed_now_and_then_does_not_undo_the_forecast(self) -> None:
        """The raw demand of a moment, with a pod counted as full on top, would move the count at each miss."""
        chance = random.Random(2)
        run = tape(lookAhead="60s", ready=4)
        run.settings = settings(lookAhead="60s")
        for i in range(900):
            rate = 4.0 + chance.gauss(0, 0.6)
            known = 3 / 4 if i % 7 == 0 else 1.0
            run.tick(
                running=40.0 * known,
                arrival_rate=rate * known,
                completion_rate=4.0 * known,
                generation_token_rate=400.0 * known,
                kv_cache_usage=0.4,
                most_running=10.0,
                ready=4,
                unknown=1 if i % 7 == 0 else 0,
            )
        settled = run.counts[300:]
        assert max(settled) - min(settled) <= 1

    def test_a_forecast_is_good_for_one_horizon_when_pods_cannot_be_seen(self) -> None:
        run = tape(lookAhead="60s")
        run.settings = settings(lookAhead="60s")
        seen = {"generation_token_rate": 400.0, "completion_rate": 4.0, "kv_cache_usage": 0.4, "most_running": 10.0}
        run.run(300, running=40.0, arrival_rate=4.0, ready=4, **seen)
        before = run.counts[-1]
        dark = run.run(90, running=30.0, arrival_rate=3.0, ready=4, unknown=1, **seen)
        assert dark == [before] * 90

    def test_a_jump_that_stands_out_of_chance_counts_at_once_and_noise_does_not(self) -> None:
        run = tape(lookAhead="60s")
        run.settings = settings(lookAhead="60s")
        seen = {"generation_token_rate": 400.0, "completion_rate": 4.0, "kv_cache_usage": 0.4, "most_running": 10.0}
        before = run.run(300, running=40.0, arrival_rate=4.0, ready=4, **seen)[-1]
        assert run.tick(running=40.0, arrival_rate=4.5, ready=4, **seen) == before
        assert run.tick(running=40.0, arrival_rate=16.0, ready=4, **seen) > 2 * before
        assert "arriving already" in text_of(run.decision)

    def test_steady_noise_is_not_carried_on(self) -> None:
        chance = random.Random(3)
        run = tape(lookAhead="120s", ready=10)
        for _ in range(600):
            run.tick(running=100 + chance.gauss(0, 8))
        assert max(run.counts) <= 10 + 5

    def test_a_standing_queue_is_not_a_ramp(self) -> None:
        run = tape(lookAhead="120s", ready=4)
        for i in range(60):
            run.tick(running=40, waiting=2.0 * i)
        assert "look_ahead" not in rules_said(run.decision)

    def test_a_smoothed_demand_with_a_sudden_queue_is_no_ramp(self) -> None:
        """The smoothed want lags behind the queue: their difference would rise although nothing does."""
        run = tape(lookAhead="120s", smoothingFactor=0.05, ready=4)
        run.run(40, running=40)
        for _ in range(60):
            run.tick(running=40, waiting=100)
            assert "look_ahead" not in rules_said(run.decision)

    def test_pods_that_come_up_after_nothing_was_seen_are_no_ramp(self) -> None:
        run = tape(lookAhead="120s", ready=1)
        run.run(30, ready=0, starting=1, requested=1)
        for _ in range(30):
            run.tick(running=80)
            assert "look_ahead" not in rules_said(run.decision)


class TestFactorsAndHeadroom:
    def test_factors_stretch_or_shrink_the_distance(self) -> None:
        assert first(settings(targetOngoingRequests=10, upscalingFactor=2), see(ready=4, running=60)).desired == 8
        assert first(settings(targetOngoingRequests=10, downscalingFactor=0.5), see(ready=8, running=40)).desired == 6

    @pytest.mark.parametrize(("headroom", "expected"), [("0", 5), ("2", 7), ("10%", 6), ("100%", 10), ("0.5", 6)])
    def test_headroom_is_kept_beyond_demand(self, headroom: str, expected: int) -> None:
        assert first(settings(targetOngoingRequests=10, headroom=headroom), see(running=50)).desired == expected

    def test_no_demand_needs_no_headroom(self) -> None:
        assert first(settings(targetOngoingRequests=10, headroom="2"), see(ready=1)).desired == 0

    @pytest.mark.parametrize(
        "blind", [{"unknown": 6}, {"running": None}, {"ready": 0, "starting": 6}], ids=["no page", "no value", "no pod"]
    )
    def test_a_count_does_not_multiply_itself_while_nothing_is_known(self, blind: dict[str, object]) -> None:
        run = tape(ready=6, headroom="10%", upscalingFactor=2, smoothingFactor=0.5)
        run.tick(running=50)
        before = run.counts[-1]
        assert [run.tick(**{"ready": 6, "requested": before, **blind}) for _ in range(50)] == [before] * 50


class TestDelays:
    def test_a_higher_count_must_be_wanted_all_the_delay_long(self) -> None:
        run = tape(upscaleDelay="3s")
        assert run.run(3, running=40) == [4, 4, 4]
        assert run.run(3, running=80) == [4, 4, 8]

    def test_of_a_window_the_least_want_counts_on_the_way_up(self) -> None:
        run = tape(upscaleDelay="3s")
        run.run(5, running=40)
        assert [run.tick(running=load) for load in (90, 70, 80, 90, 90)] == [4, 4, 7, 7, 8]
        assert run.reason == "delay: 9 not yet: 8 held for the upscale delay of 3s"

    def test_of_a_window_the_highest_want_counts_on_the_way_down(self) -> None:
        run = tape(ready=9, downscaleDelay="3s")
        run.run(5, running=90)
        assert [run.tick(running=load) for load in (20, 50, 10, 10, 10)] == [9, 9, 5, 5, 1]

    def test_the_count_at_first_sight_was_wanted_until_then(self) -> None:
        run = tape(ready=9, downscaleDelay="10s")
        assert run.run(10, running=10) == [9] * 10
        assert run.tick(running=10) == 1

    def test_consecutive_wants_must_not_break_and_the_latest_counts(self) -> None:
        run = tape(ready=9, downscaleDelay="3s", delayMode="consecutive")
        loads = (20, 50, 90, 20, 50, 10, 30)
        assert [run.tick(running=load) for load in loads] == [9, 9, 9, 9, 9, 9, 3]

    def test_coming_back_from_zero_waits_for_nothing(self) -> None:
        for mode in ("stabilization", "consecutive"):
            run = tape(ready=1, upscaleDelay="60s", delayMode=mode)
            assert run.tick(running=0) == 0
            assert run.tick(ready=1, requested=0, running=30) == 3

    @pytest.mark.parametrize("mode", ["stabilization", "consecutive"])
    def test_a_long_silence_fills_no_window(self, mode: str) -> None:
        run = tape(ready=9, downscaleDelay="5m", delayMode=mode)
        run.run(10, running=10)
        assert run.tick(3600.0, running=10) == 9
        assert run.run(200, running=10) == [9] * 200

    @pytest.mark.parametrize("jump", [-86400.0, 86400.0, -0.5, 0.0])
    def test_a_clock_that_jumps_lowers_nothing_and_blocks_nothing(self, jump: float) -> None:
        run = tape(ready=9, downscaleDelay="5m", smoothingFactor=0.5, burstThreshold=0.5)
        run.run(30, running=80)
        assert run.tick(jump, running=10) == 9
        assert run.run(20, running=300)[-1] == 30


class TestStepLimits:
    def test_growth_is_limited_in_each_period(self) -> None:
        run = tape(upscaleLimit="4/10s")
        assert run.run(21, running=400) == [8] * 10 + [12] * 10 + [16]
        assert run.reason == "step_limits: 40 → 16: upscale limit 4/10s"

    def test_a_percentage_is_of_the_count_when_the_period_began(self) -> None:
        assert tape(upscaleLimit="100%/10s").run(21, running=400)[::10] == [8, 16, 32]
        assert tape(ready=40, downscaleLimit="25%/10s").run(21, running=10)[::10] == [30, 23, 18]

    def test_a_small_count_still_moves_by_one(self) -> None:
        assert tape(ready=3, downscaleLimit="10%/10s").run(11, running=10)[::10] == [2, 1]

    def test_what_went_down_in_the_period_may_come_back(self) -> None:
        """As the HPA counts: from where the count stood when the period began."""
        run = tape(ready=10, upscaleLimit="4/60s")
        assert [run.tick(running=load) for load in (140, 110, 400)] == [14, 11, 14]

    def test_a_limit_upwards_never_lowers_the_count(self) -> None:
        run = tape(ready=4, upscaleLimit="1/60s")
        run.tick(running=40, minimum=20)
        assert run.tick(running=250, minimum=0) >= 20
        run = tape(ready=20, downscaleLimit="1/60s")
        run.tick(running=200, maximum=10)
        assert run.tick(running=50, maximum=100) <= 10


class TestCredit:
    def test_one_backlog_is_asked_for_once(self) -> None:
        run = tape(ready=2, start_up=60)
        assert run.run(59, running=20, waiting=30) == [5] * 59

    def test_a_queue_that_grows_while_pods_start_is_theirs_to_take(self) -> None:
        run = tape(ready=2, start_up=60)
        run.tick(running=20, waiting=30)
        assert run.tick(running=20, waiting=50) == 5
        assert run.reason == "credit: 7 → 5: 3 pods on the way will take the queue"

    def test_running_requests_are_not_credited(self) -> None:
        run = tape(ready=2, start_up=60)
        run.tick(running=20, waiting=30)
        assert run.tick(running=70) == 7

    def test_pods_that_no_node_takes_are_counted_once(self) -> None:
        run = tape(ready=2)
        seen = {"ready": 2, "unschedulable": 3, "requested": 5, "running": 20}
        assert [run.tick(**seen, waiting=30) for _ in range(100)] == [5] * 100

    def test_without_credit_a_growing_queue_asks_for_more(self) -> None:
        run = tape(ready=2, start_up=60, startingCredit="false")
        run.tick(running=20, waiting=30)
        assert run.tick(running=20, waiting=50) == 7

    def test_headroom_on_the_way_takes_a_queue_too(self) -> None:
        run = tape(ready=5, start_up=60, headroom="2")
        assert run.tick(running=50) == 7
        assert run.tick(running=50, waiting=10) == 7


STUCK: dict[str, object] = {
    "ready": 2,
    "unschedulable": 3,
    "requested": 5,
    "running": 20,
    "lacks": "nvidia.com/gpu",
}


class TestBlocked:
    def test_a_growing_backlog_asks_for_no_more_where_pods_find_no_node(self) -> None:
        run = tape(ready=2, startingCredit="false")
        assert run.tick(**STUCK, waiting=30, unschedulable_s=899) == 5
        assert run.tick(**STUCK, waiting=80, unschedulable_s=900) == 5
        assert run.decision is not None
        assert run.decision.blocked == "3 pods found no node in 900s, where one may take 900s; lacking: nvidia.com/gpu"
        assert run.reason == f"blocked: no more than 5: {run.decision.blocked}"

    def test_it_resumes_by_itself_when_the_pods_have_found_nodes(self) -> None:
        run = tape(ready=2, startingCredit="false")
        run.tick(**STUCK, waiting=30)
        assert run.tick(**STUCK, waiting=80, unschedulable_s=1000) == 5
        assert run.tick(ready=2, starting=3, running=20, waiting=80) == 10
        assert run.decision is not None
        assert run.decision.blocked == ""

    @pytest.mark.parametrize("waiting", [1, None])
    def test_what_is_asked_for_stays_asked_for_while_anything_waits_or_may_wait(self, waiting: float | None) -> None:
        run = tape(ready=2, startingCredit="false")
        run.tick(**STUCK, waiting=30)
        assert run.tick(**STUCK, waiting=waiting, unschedulable_s=1000) == 5

    def test_pods_that_nobody_waits_for_any_more_are_taken_back(self) -> None:
        run = tape(ready=2, startingCredit="false")
        run.tick(**STUCK, waiting=30)
        assert run.tick(**STUCK, waiting=0, unschedulable_s=1000) == 2

    def test_a_count_that_somebody_else_has_raised_is_left_to_them(self) -> None:
        run = tape(ready=2)
        run.tick(ready=2, running=20)
        stuck = {**STUCK, "requested": 8, "unknown": 2}
        assert run.tick(**stuck, unschedulable_s=1000) == 8

    @pytest.mark.parametrize(
        ("bound", "node", "at_s"),
        [("auto", None, 900), ("auto", 60.0, 300), ("auto", 400.0, 800), ("2m", 400.0, 120)],
        ids=["no node was seen", "nodes are quick", "nodes are slow", "as it is set"],
    )
    def test_the_bound_follows_the_nodes_that_were_seen(self, bound: str, node: float | None, at_s: float) -> None:
        seen = None if node is None else StartUp(500.0, 600.0, cold=Took(500.0, 600.0), node=Took(node / 2, node))
        run = tape(ready=2, maxNodeProvisionTime=bound)
        run.tick(**STUCK, waiting=30)
        for age, is_blocked in ((at_s - 1, False), (at_s, True)):
            run.tick(**STUCK, start_up=seen, unschedulable_s=age)
            assert run.decision is not None
            assert bool(run.decision.blocked) is is_blocked

    def test_the_minimum_is_asked_for_all_the_same(self) -> None:
        run = tape(ready=2)
        run.tick(**STUCK, waiting=30)
        assert run.tick(**STUCK, unschedulable_s=1000, minimum=7) == 7

    def test_rules_that_fire_while_blocked_do_not_pile_up(self) -> None:
        run = Tape(settings(rules="+2 when waiting > 10; -1 when ongoing < 1 for 5m"), ready=2)
        for _ in range(10):
            run.tick(**STUCK, waiting=80, unschedulable_s=1000)
        assert run.tick(ready=5, running=50, waiting=80) == 7

    def test_rules_that_would_take_away_while_blocked_do_not_pile_up_either(self) -> None:
        run = Tape(settings(rules="-1 when ongoing < 100"), ready=5)
        for _ in range(10):
            assert run.tick(**STUCK, waiting=1, unschedulable_s=1000) == 5
        assert run.tick(ready=5, running=50, waiting=0) == 4


class TestHold:
    def test_an_unknown_pod_is_not_an_idle_pod(self) -> None:
        run = tape(ready=4)
        run.tick(running=40)
        assert run.tick(unknown=3, running=0) == 4
        assert run.reason == "hold: stays at 4: 3 pods unknown"

    def test_an_unknown_pod_counts_as_fully_used_when_the_others_are_overloaded(self) -> None:
        assert first(settings(targetOngoingRequests=10), see(ready=4, unknown=2, running=50)).desired == 7

    def test_ignorance_alone_raises_nothing(self) -> None:
        run = tape(ready=10)
        run.tick(running=50)
        assert run.decision is not None
        assert run.decision.desired == 5
        assert run.tick(ready=10, requested=5, unknown=9, running=1) == 5  # 5 are wanted, 10 are still there

    def test_a_signal_that_was_asked_for_and_is_unknown_holds(self) -> None:
        run = tape(ready=9, targetKvCacheUsage=0.8)
        assert run.run(30, running=10) == [9] * 30
        assert run.reason == "hold: stays at 9: KV cache unknown"
        assert run.tick(running=120) == 12

    def test_what_was_unknown_must_be_low_for_the_whole_delay(self) -> None:
        for mode in ("stabilization", "consecutive"):
            run = tape(ready=9, targetKvCacheUsage=0.8, downscaleDelay="20s", delayMode=mode)
            run.run(60, running=10)
            assert run.run(19, running=10, kv_cache_usage=0.1) == [9] * 19
            assert run.run(3, running=10, kv_cache_usage=0.1)[-1] < 9

    def test_a_standing_queue_holds(self) -> None:
        run = tape(ready=9)
        assert run.tick(running=10, waiting=9) == 9
        assert run.reason == "hold: stays at 9: 9 requests wait"
        assert run.tick(running=10, waiting=8) == 2

    @pytest.mark.parametrize("mode", ["stabilization", "consecutive"])
    def test_a_fleet_that_restarts_as_a_whole_keeps_its_count(self, mode: str) -> None:
        run = tape(ready=9, smoothingFactor=0.5, downscaleDelay="10s", delayMode=mode)
        run.run(9, running=20)
        assert [run.tick(ready=0, starting=9, requested=9) for _ in range(60)] == [9] * 60
        assert run.reason == "signals: no ready pod was read: the count stays"

    def test_a_scraper_that_misses_now_and_then_still_lets_the_count_fall(self) -> None:
        run = tape(ready=9, downscaleDelay="60s")
        for i in range(120):
            run.tick(running=10, unknown=1 if i % 10 == 0 else 0)
        assert run.counts[-1] <= 2  # the one that was missed counts as used


class TestBoundsAndReasons:
    def test_minimum_and_maximum_have_the_last_word(self) -> None:
        assert first(settings(targetOngoingRequests=10), see(running=900, maximum=12)).desired == 12
        assert first(settings(targetOngoingRequests=10), see(running=0, minimum=2)).desired == 2
        assert first(settings(targetOngoingRequests=10), see(ready=9, unknown=9, maximum=5)).desired == 5

    def test_the_reason_is_the_step_that_settled_the_count(self) -> None:
        plain, slow = {"targetOngoingRequests": 10}, {"targetOngoingRequests": 10, "upscaleDelay": "9s"}
        for metadata, seen, reason in (
            (plain, {"running": 40}, "steady"),
            (plain, {"running": 70}, "signals: ongoing requests: 7.00 replicas"),
            (slow, {"running": 70}, "delay: 7 not yet"),
            ({**plain, "headroom": "2"}, {"running": 70}, "headroom: 2 more"),
            ({**plain, "upscalingFactor": 2}, {"running": 70}, "factors: 7 → 10: 2 × the distance from 4 ready"),
            ({**plain, "upscaleLimit": "1/1m"}, {"running": 70}, "step_limits: 7 → 5"),
            (plain, {"running": 7000}, "bounds: cut to the maximum of 100"),
            (plain, {"running": 1, "waiting": 4}, "hold: stays at 4: 4 requests wait"),
            (plain, {"unknown": 4}, "signals: no ready pod was read"),
            (plain, {"running": None}, "signals: no signal is known"),
        ):
            decision = first(settings(**metadata), see(ready=4, **seen))  # type: ignore[arg-type]
            assert decision.reason.startswith(reason), (metadata, seen, decision)

    def test_numbers_in_texts_are_readable(self) -> None:
        run = tape(ready=4, burstThreshold=0.1)
        run.tick(running=123.456789012345)
        run.tick(running=98765.4321, waiting=1234567.0)
        assert "1,234,567 waiting + 98,765 running ÷ 10 a replica" in text_of(run.decision)
        assert "e+" not in text_of(run.decision)

    def test_active_while_anything_waits_runs_loads_or_cannot_be_seen(self) -> None:
        plain = settings(targetOngoingRequests=10)
        for seen, active in (
            ({}, False),
            ({"waiting": 1}, True),
            ({"running": 0.5}, True),
            ({"running": None}, True),
            ({"unknown": 1}, True),
            ({"starting": 1}, True),
            ({"unschedulable": 1}, True),
            ({"ready": 0, "requested": 0}, False),
        ):
            assert first(plain, see(**seen)).active is active, seen  # type: ignore[arg-type]
