"""What each preset's design is for, and the faults that such designs had where they were published."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.unit.policy.world import Engines, Tape, first, latency, preset, rules_said, see, text_of, turns


class TestRayServe:
    """Jitter must not start a replica of four GPUs; load must, by twice the distance; night gives them back."""

    def test_half_a_second_of_jitter_buys_nothing(self) -> None:
        tape = Tape(preset("ray-serve", metricsInterval="0.5s"), ready=4)
        tape.run(10, running=43)
        tape.tick(running=43, waiting=100)
        assert tape.run(60, running=43) == [4] * 120

    def test_three_seconds_of_load_buy_twice_the_distance(self) -> None:
        tape = Tape(preset("ray-serve"), ready=4)
        tape.run(10, running=43)
        counts = tape.run(4, running=48, waiting=48)
        assert counts[:3] == [4, 4, 4]
        assert counts[3] == 12  # 8 are needed, 4 are there: 4 + 2 × 4

    def test_the_average_is_over_the_count_and_weighs_the_newest_six_tenths(self) -> None:
        tape = Tape(preset("ray-serve", upscaleDelay="0", upscalingFactor="1"), ready=4)
        assert [tape.tick(running=load) for load in (48, 168)] == [4, 10]  # 0.6 × 14 + 0.4 × 4

    def test_replicas_go_back_slowly_after_five_quiet_minutes(self) -> None:
        tape = Tape(preset("ray-serve"), ready=16)
        tape.run(10, running=190)
        assert tape.run(299, running=24)[-1] == 16
        assert tape.run(6, running=24)[-1] in (8, 9)  # half the distance to 2

    def test_a_short_cold_start_of_quiet_does_not_give_anything_back(self) -> None:
        tape = Tape(preset("ray-serve"), ready=8)
        for _ in range(10):
            tape.run(200, running=24)
            tape.run(20, running=90)
        assert set(tape.counts) == {8}


class TestPulse:
    """Twenty times the load within half a second, held for half an hour."""

    def test_the_first_tick_of_the_pulse_is_answered_whole(self) -> None:
        tape = Tape(preset("pulse"), ready=64, start_up=10)
        tape.run(10, running=300, maximum=512)
        assert tape.tick(running=640, waiting=5360, maximum=512) == 512
        assert "burst" in rules_said(tape.decision)

    def test_even_a_rise_by_half_at_least_doubles(self) -> None:
        tape = Tape(preset("pulse"), ready=64, start_up=10)
        tape.run(10, running=300, maximum=512)
        assert tape.tick(running=450, maximum=512) >= 128

    def test_a_pulse_that_climbs_over_some_ticks_grows_with_it(self) -> None:
        tape = Tape(preset("pulse"), ready=20, start_up=30)
        tape.run(10, running=95, maximum=512)
        assert tape.tick(running=100, waiting=100, maximum=512) >= 40
        assert tape.tick(running=100, waiting=500, maximum=512) >= 120
        assert tape.tick(running=100, waiting=1500, maximum=512) >= 320

    def test_what_was_asked_for_is_held_for_ten_minutes_without_flapping(self) -> None:
        tape = Tape(preset("pulse"), ready=64, start_up=10)
        tape.run(10, running=300, maximum=512)
        chance = random.Random(1)
        held = [
            tape.tick(running=chance.uniform(1900, 2100), waiting=0, maximum=512) for _ in range(2 * 60 * 30)
        ]  # the pulse, held for half an hour
        assert turns(held) <= 1
        assert min(held[1:]) >= 400
        assert min(tape.run(590, running=300, maximum=512)) >= 400
        assert 60 <= tape.run(200, running=300, maximum=512)[-1] <= 70  # once a mean of three minutes forgot it, too

    def test_the_floor_for_a_known_event_stands_before_the_pulse_does(self) -> None:
        scheduled = preset("pulse", minReplicasSchedule="2026-12-24 18:00-23:00 UTC = 300")
        assert first(scheduled, see(ready=64, running=300, maximum=512, utc=1798138800.0)).desired == 300


class TestQueueRules:
    """Rules over rate, utilization and P95, a warm pool of a tenth, windows that do not oscillate."""

    def closed_loop(self, rate: float, ready: int, seconds: int, seed: int) -> Tape:
        """Sampling noise of a fifth on everything, replicas that take 47 s to start."""
        chance, engines = random.Random(seed), Engines(slots=16, service_s=12)
        engines.ongoing = rate * engines.service_s
        tape = Tape(preset("queue-rules"), ready=ready, start_up=47)
        for _ in range(seconds):
            tape.tick(seconds=1.0, minimum=2, maximum=40, **self.seen(engines, rate, tape, chance))
        return tape

    def seen(self, engines: Engines, rate: float, tape: Tape, chance: random.Random) -> dict[str, object]:
        ready = tape.ready + sum(at <= tape.time + 1 for at in tape.starting)
        seen = engines.serve(rate, ready, 1.0)
        noisy = {name: value and value * chance.uniform(0.8, 1.2) for name, value in seen.items()}
        queued = (seen["waiting"] or 0.0) / max(rate, 1.0)
        p95 = (0.1 + queued) * chance.uniform(0.8, 1.2)
        return {**noisy, "latency": {"ttft": latency(p95, worst=p95 * 1.1)}}

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("rate", [8.0, 10.0, 14.0])
    def test_sampling_noise_does_not_make_it_oscillate(self, rate: float, seed: int) -> None:
        tape = self.closed_loop(rate, ready=round(rate), seconds=3600, seed=seed)
        assert turns(tape.counts) <= 1
        assert rate * 0.75 <= tape.counts[-1] <= rate * 2.2

    def test_overload_adds_two_in_each_window_until_it_is_over(self) -> None:
        tape = self.closed_loop(20.0, ready=6, seconds=1800, seed=1)
        rises = [b - a for a, b in pairwise(tape.counts) if b > a]
        assert max(rises) <= 3  # two, and their share of headroom
        assert 16 <= tape.counts[-1] <= 32

    def test_latency_alone_adds_two(self) -> None:
        tape = Tape(preset("queue-rules"), ready=11)
        slow = {"latency": {"ttft": latency(0.5)}, "waiting": 4, "completion_rate": 4.0, "running": 20}
        assert tape.run(90, arrival_rate=4.0, **slow)[-1] == 11
        assert tape.run(2, arrival_rate=4.0, **slow)[-1] in (13, 14)

    def test_one_slow_instance_keeps_all(self) -> None:
        seen = {"arrival_rate": 4.0, "completion_rate": 4.0, "running": 10.0, "kv_cache_usage": 0.1}
        for worst, least in ((0.2, 11), (0.1, 10)):
            tape = Tape(preset("queue-rules"), ready=11)
            tape.run(100, latency={"ttft": latency(0.08, worst=worst)}, **seen)
            assert tape.counts[-1] == least

    def test_the_warm_pool_stays_a_tenth_for_hours(self) -> None:
        tape = Tape(preset("queue-rules"), ready=22)
        middling = {"arrival_rate": 16.0, "completion_rate": 16.0, "running": 100.0, "kv_cache_usage": 0.6}
        assert set(tape.run(2 * 3600, **middling, latency={"ttft": latency(0.2)})) == {22}

    def test_an_idle_service_falls_one_at_a_time(self) -> None:
        tape = Tape(preset("queue-rules"), ready=5)
        counts = tape.run(900, minimum=1)
        assert min(b - a for a, b in pairwise(counts)) >= -2
        assert counts[-1] == 2  # one, and one as warm pool


class TestDualThreshold:
    """Queue seconds: a burst at once, gentle growth with a cool-down, minus one after five quiet minutes."""

    SERVED = 2.0
    """Requests a second that are worked off: `wait` seconds of queue are twice as many requests."""

    def queue(self, wait: float, arrivals: float = 2.0, **more: float) -> dict[str, float]:
        served = {"completion_rate": self.SERVED, "arrival_rate": arrivals, "kv_cache_usage": 0.8}
        return {"waiting": wait * self.SERVED, "running": 20.0, **served, **more}

    def test_fifteen_seconds_of_queue_add_three_once_while_those_start(self) -> None:
        tape = Tape(preset("dual-threshold"), ready=2, start_up=100)
        assert tape.tick(**self.queue(16)) == 5
        assert tape.run(99, **self.queue(40)) == [5] * 99
        assert tape.run(30, **self.queue(2)) == [5] * 30

    def test_when_three_were_not_enough_three_more_follow(self) -> None:
        tape = Tape(preset("dual-threshold"), ready=2, start_up=100)
        tape.run(100, **self.queue(20))
        assert tape.tick(**self.queue(20)) == 8

    def test_five_seconds_of_queue_add_gently_and_then_rest_for_two_minutes(self) -> None:
        tape = Tape(preset("dual-threshold"), ready=4, start_up=20)
        assert tape.tick(**self.queue(6)) == 5
        assert tape.run(119, **self.queue(6)) == [5] * 119
        assert tape.tick(**self.queue(6)) == 6

    def test_gentle_growth_takes_two_when_arrivals_ask_for_them(self) -> None:
        assert first(preset("dual-threshold"), see(ready=4, **self.queue(6, arrivals=2.9))).desired == 6
        assert first(preset("dual-threshold"), see(ready=4, **self.queue(6, arrivals=9.0))).desired == 6

    def test_a_burst_need_not_wait_for_the_gentle_cool_down(self) -> None:
        tape = Tape(preset("dual-threshold"), ready=4, start_up=5)
        tape.run(10, **self.queue(6))
        assert tape.tick(**self.queue(16)) == 8

    def test_one_replica_goes_after_five_quiet_minutes_without_a_break(self) -> None:
        quiet = self.queue(0, kv_cache_usage=0.2)
        tape = Tape(preset("dual-threshold"), ready=6)
        assert tape.run(300, **quiet) == [6] * 300
        assert tape.run(301, **quiet) == [5] * 301
        assert tape.tick(**quiet) == 4

    def test_a_break_in_the_fifth_minute_starts_the_five_minutes_anew(self) -> None:
        quiet = self.queue(0, kv_cache_usage=0.2)
        for broken in (self.queue(1.5, kv_cache_usage=0.2), self.queue(0, kv_cache_usage=0.5)):
            tape = Tape(preset("dual-threshold"), ready=6)
            tape.run(290, **quiet)
            tape.tick(**broken)
            assert tape.run(300, **quiet) == [6] * 300
            assert tape.tick(**quiet) == 5

    def test_a_queue_that_cannot_be_timed_neither_adds_nor_takes(self) -> None:
        tape = Tape(preset("dual-threshold"), ready=6)
        assert tape.run(600, waiting=3, running=1, kv_cache_usage=0.1) == [6] * 600
        assert "no rule fires" in text_of(tape.decision)


class TestAdaptive:
    """No numbers: what a replica carries is learned from replicas."""

    def run(self, tape: Tape, engines: Engines, rate: float, seconds: int, chance: random.Random) -> list[int]:
        counts = []
        for _ in range(seconds):
            ready = tape.ready + sum(at <= tape.time + 1 for at in tape.starting)
            arrivals = max(0.0, chance.gauss(rate, rate**0.5))  # as uneven as independent users are
            seen = engines.serve(arrivals, ready, 1.0)
            counts.append(tape.tick(minimum=1, maximum=60, start_up=tape.start_up, **seen))
        return counts

    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("start_up", [10.0, 60.0])
    @pytest.mark.parametrize("tokens", [None, 200.0], ids=["by ongoing requests", "by arrivals"])
    def test_it_learns_slots_grows_under_a_queue_and_shrinks_when_fewer_would_do(
        self, tokens: float | None, start_up: float, seed: int
    ) -> None:
        chance, engines = random.Random(seed), Engines(slots=16, service_s=8, tokens=tokens)
        tape = Tape(preset("adaptive"), ready=2, start_up=start_up)
        few = self.run(tape, engines, 3.0, 600, chance)  # 24 at once fit the 32 slots of two
        assert max(few) <= 4  # the first moments, of which no more is known than that it went well with a few
        assert few[-1] <= 3
        many = self.run(tape, engines, 8.0, 2400, chance)  # 64 at once need five, used by nine tenths
        assert tape.state is not None
        assert tape.state.capacity.slots == pytest.approx(16, abs=0.5)
        assert max(many) >= 5
        assert 5 <= many[-1] <= 8
        assert engines.ongoing < 16 * tape.ready
        rest = self.run(tape, engines, 2.0, 1800, chance)  # 16 at once
        assert 1 <= rest[-1] <= 3

    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("rate", [7.0, 8.0, 9.5])
    @pytest.mark.parametrize("tokens", [None, 200.0], ids=["by ongoing requests", "by arrivals"])
    def test_an_hour_of_noisy_steady_load_turns_it_at_most_twelve_times(
        self, tokens: float | None, rate: float, seed: int
    ) -> None:
        """Chance alone moves the load by half a replica; the downscale delay bounds how often that can turn it."""
        chance, engines = random.Random(seed), Engines(slots=16, service_s=8, tokens=tokens)
        tape = Tape(preset("adaptive"), ready=6, start_up=60)
        self.run(tape, engines, 12.0, 1200, chance)  # it meets a queue and learns
        steady = self.run(tape, engines, rate, 5400, chance)[1800:]
        assert turns(steady) <= 12
        assert max(steady) - min(steady) <= 3

    def test_without_a_queue_an_even_load_changes_nothing(self) -> None:
        tape = Tape(preset("adaptive"), ready=4)
        assert set(tape.run(900, running=32, most_running=8.0)) == {4}

    def test_a_burst_is_answered_in_the_tick_that_sees_it(self) -> None:
        tape = Tape(preset("adaptive"), ready=4, start_up=60)
        tape.run(60, running=32, most_running=8.0)
        assert tape.tick(running=40, waiting=80, most_running=10.0) == 12
