"""What is learned of a replica's capacity, and what is asked of one because of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from scaler.policy import Latency, PolicySettings, State
from scaler.policy.capacity import Capacity, Service, learn, service, target_ongoing
from tests.unit.policy.world import first, latency, see, settings

PLAIN = settings()
WAITING = {"full_running": 16.0, "most_running": 16.0}
"""Replicas that run 16 each while others wait."""

Moment = Mapping[str, float | Mapping[str, Latency] | None]


def learned(
    moments: Iterable[Moment], with_settings: PolicySettings = PLAIN, after: Capacity | None = None
) -> Capacity:
    """What is known after moments one second apart."""
    capacity = Capacity() if after is None else after
    for i, seen in enumerate(moments):
        at = i if capacity.time is None else capacity.time + 1
        capacity = learn(with_settings, capacity, see(float(at), **seen))  # type: ignore[arg-type]
    return capacity


def known(service: Service | None) -> Service:
    assert service is not None
    return service


class TestSlots:
    def test_slots_are_what_runs_while_others_wait_and_the_number_stands_still(self) -> None:
        capacity = learned([WAITING] * 6)
        assert capacity.slots == 16.0
        assert target_ongoing(PLAIN, capacity) == (pytest.approx(14.4), "90% of its 16 slots")

    @pytest.mark.parametrize(
        "moments",
        [
            [WAITING] * 5,
            [WAITING, {}] * 20,
            [{"full_running": 9.0 + i % 2, "most_running": 10.0} for i in range(100)],
            [{"full_running": None, "most_running": 16.0}] * 100,
        ],
        ids=["a moment", "now and then", "a number that moves", "no queue"],
    )
    def test_without_that_no_slots_are_known(self, moments: list[Moment]) -> None:
        assert learned(moments).slots is None

    def test_more_slots_are_believed_soon_and_fewer_only_when_they_last(self) -> None:
        full = learned([WAITING] * 6)
        assert learned([{"full_running": 32.0, "most_running": 32.0}] * 6, after=full).slots == 32.0
        fewer: Moment = {"full_running": 8.0, "most_running": 8.0}
        assert learned([fewer] * 30, after=full).slots == 16.0
        assert learned([fewer] * 31, after=full).slots == 8.0

    def test_a_full_replica_that_runs_nothing_still_has_a_slot(self) -> None:
        assert learned([{"full_running": 0.0}] * 6).slots == 1.0

    def test_before_a_replica_was_full_what_one_carried_is_what_one_should_carry(self) -> None:
        carried = learned([{"most_running": 7.0}, {"most_running": 3.0}])
        assert target_ongoing(PLAIN, carried) == (7.0, "the most that one carried so far")

    def test_nothing_known_asks_one_request_of_a_replica_and_does_not_divide_by_zero(self) -> None:
        assert target_ongoing(PLAIN, Capacity())[0] == 1.0
        assert first(settings(), see(ready=1)).desired == 0

    def test_kv_room_is_learned_from_use_and_caps_the_target(self) -> None:
        capacity = learned([{"running": 40.0, "kv_cache_usage": 0.5, "most_running": 30.0}])
        assert capacity.room == 20.0  # 10 a pod fill half of it
        target, source = target_ongoing(PLAIN, capacity)
        assert target == pytest.approx(18.0)
        assert source == "90% of the 20 its KV cache holds"

    def test_kv_room_follows_contexts_that_grow(self) -> None:
        before: Moment = {"running": 40.0, "kv_cache_usage": 0.25}
        after: Moment = {"running": 40.0, "kv_cache_usage": 0.5}
        assert learned([before, *[after] * 120]).room == pytest.approx(20.0, rel=0.01)

    def test_a_nearly_empty_kv_cache_tells_nothing_about_its_room(self) -> None:
        assert learned([{"running": 4.0, "kv_cache_usage": 0.01}]).room is None

    def test_given_slots_stand_in_for_learned_ones_and_kv_room_still_caps(self) -> None:
        given = settings(maxNumSeqs=100)
        assert first(given, see(ready=4, running=240)).demand == {"work": pytest.approx(240 / 90)}
        demand = first(given, see(ready=4, running=240, kv_cache_usage=0.75)).demand
        assert demand == {"work": pytest.approx(240 / (0.9 * 80))}

    def test_what_was_learned_survives_a_change_of_settings_and_a_gap(self) -> None:
        state = State(desired=5, capacity=Capacity(carried=9.0, slots=16.0, full_since=3.0, time=7.0, running=2.0))
        assert state.under_new_settings().capacity == state.capacity
        after = state.after_gap(10_000.0)
        assert (after.desired, after.capacity) == (5, Capacity(carried=9.0, slots=16.0))


ONE_S, PER_REQUEST_S, TOKENS = 0.02, 0.001, 200
"""An engine: seconds per token when one request runs, what each further one adds, and a request's tokens."""


def working(running: float, *, tokens: int = TOKENS, spread: float = 1.0, **more: float) -> Moment:
    """Four replicas that run so many requests each, in balance: as many come as go."""
    token_s = ONE_S + PER_REQUEST_S * running
    rate = 4 * running / token_s
    return {
        "running": 4 * running,
        "most_running": running * spread,
        "generation_token_rate": rate,
        "arrival_rate": rate / tokens,
        "completion_rate": rate / tokens,
        "latency": {"tpot": latency(token_s), "e2e": latency(token_s * tokens)},
        **more,
    }


def day(most: int = 30, **more: float) -> list[Moment]:
    """A load that rises and falls, a minute at each level: 1 to `most` requests in a replica."""
    levels = [*range(1, most + 1, 3), *range(most, 0, -3)]
    return [working(float(level), **more) for level in levels for _ in range(60)]  # type: ignore[arg-type]


class TestService:
    def test_the_rate_is_running_over_how_long_a_request_runs(self) -> None:
        """Little's law, at the number that is to run: 36 of 40 slots, each (20 + 36) ms a token."""
        given = settings(maxNumSeqs=40)
        found = known(service(given, learned(day(), given)))
        assert found.running == pytest.approx(36)
        assert found.request_s == pytest.approx(TOKENS * (ONE_S + 36 * PER_REQUEST_S), rel=0.06)
        assert found.rate == pytest.approx(found.running / found.request_s)

    def test_a_load_never_seen_is_promised_no_faster_than_it_would_be(self) -> None:
        given = settings(maxNumSeqs=100)
        found = known(service(given, learned(day(8), given)))
        assert found.request_s >= TOKENS * (ONE_S + found.running * PER_REQUEST_S)

    def test_the_inter_token_objective_bounds_what_runs(self) -> None:
        asked = settings(itlSlo="45ms", maxNumSeqs=100)
        found = known(service(asked, learned(day(), asked)))
        assert found.running == pytest.approx((0.045 - ONE_S) / PER_REQUEST_S, rel=0.06)
        assert found.why == "itlSlo 0.045s"

    def test_the_objective_for_the_whole_latency_bounds_what_runs(self) -> None:
        asked = settings(e2eSlo="9s", maxNumSeqs=100)
        found = known(service(asked, learned(day(), asked)))
        assert found.running == pytest.approx((9 / TOKENS - ONE_S) / PER_REQUEST_S, rel=0.06)
        assert found.why == "e2eSlo 9s"

    def test_the_percentile_of_the_objective_is_the_one_that_is_asked_for(self) -> None:
        strict, mild = (settings(itlSlo="45ms", maxNumSeqs=100, percentile=p) for p in (99, 50))
        rooms = [known(service(asked, learned(day(), asked))).running for asked in (strict, mild)]
        assert 4 * rooms[0] < rooms[1]  # p99 is three times p50 here

    @pytest.mark.parametrize("objective", [{"itlSlo": "15ms"}, {"e2eSlo": "4s"}])
    def test_an_objective_that_idle_replicas_miss_is_ignored(self, objective: dict[str, object]) -> None:
        asked = settings(maxNumSeqs=40, **objective)
        assert known(service(asked, learned(day(), asked))).why == "90% of its 40 slots"

    def test_where_no_latency_is_told_the_pace_stands_for_it(self) -> None:
        asked = settings(itlSlo="45ms", maxNumSeqs=100)
        mute = [{**moment, "latency": {}} for moment in day()]
        assert known(service(asked, learned(mute, asked))).why == "itlSlo 0.045s"

    def test_the_time_in_a_queue_is_not_laid_on_what_runs(self) -> None:
        asked = settings(e2eSlo="9s", maxNumSeqs=100)
        calm = learned(day(), asked)
        queued = [{**working(30.0, waiting=40.0), "latency": {"e2e": latency(60.0)}}] * 300
        after = learned(queued, asked, calm)
        assert known(service(asked, after)).running == pytest.approx(known(service(asked, calm)).running)

    def test_uneven_spread_lowers_what_a_replica_is_given(self) -> None:
        given = settings(maxNumSeqs=40)
        even, uneven = (learned(day(spread=spread), given) for spread in (1.0, 1.5))
        assert known(service(given, even)).running == pytest.approx(36)
        assert known(service(given, uneven)).running == pytest.approx(36 / 1.5, rel=0.02)
        assert known(service(given, uneven)).why == "60% of its 40 slots"

    def test_an_idle_fleet_is_not_an_uneven_one(self) -> None:
        given = settings(maxNumSeqs=40)
        idle = [working(2.0, spread=3.0)] * 600
        assert known(service(given, learned(idle, given, learned(day(), given)))).running == pytest.approx(36)

    def test_a_surge_that_fills_the_queue_makes_requests_no_shorter(self) -> None:
        given = settings(maxNumSeqs=40)
        before = learned(day(), given)
        surge = [{**working(30.0), "arrival_rate": 100.0, "waiting": 80.0 * i} for i in range(60)]
        after = learned(surge, given, before)
        assert known(service(given, after)).rate == pytest.approx(known(service(given, before)).rate, rel=0.1)

    def test_a_new_mix_is_followed(self) -> None:
        given = settings(maxNumSeqs=40)
        before = learned(day(), given)
        after = learned([working(20.0, tokens=4 * TOKENS)] * 1800, given, before)
        assert known(service(given, after)).rate == pytest.approx(known(service(given, before)).rate / 4, rel=0.1)

    def test_a_prompt_that_makes_tokens_slower_is_followed_too(self) -> None:
        given = settings(maxNumSeqs=40)
        before = learned(day(), given)
        rate = 4 * 20.0 / 0.12  # three times the seconds a token
        each = {"arrival_rate": rate / TOKENS, "completion_rate": rate / TOKENS}
        after = learned([working(20.0, generation_token_rate=rate, **each)] * 3600, given, before)
        assert known(service(given, after)).rate < 0.5 * known(service(given, before)).rate

    @pytest.mark.parametrize(
        "moments",
        [
            [],
            [working(10.0)],
            [{**working(10.0), "generation_token_rate": None}] * 60,
            [{**working(10.0), "arrival_rate": None, "completion_rate": None}] * 60,
            [working(0.01)] * 60,
        ],
        ids=["nothing", "one moment", "no tokens told", "no requests told", "hardly any load"],
    )
    def test_without_speed_no_service_is_known(self, moments: list[Moment]) -> None:
        given = settings(maxNumSeqs=40)
        assert service(given, learned(moments, given)) is None

    def test_without_a_bound_no_service_is_known(self) -> None:
        assert service(PLAIN, learned(day())) is None

    def test_a_tick_that_was_missed_for_long_counts_for_five_seconds_at_most(self) -> None:
        given = settings(maxNumSeqs=40)
        capacity = learned(day(), given)
        assert capacity.time is not None
        later = learn(given, capacity, see(capacity.time + 3600.0, **working(10.0, tokens=9000)))  # type: ignore[arg-type]
        assert later.tokens < capacity.tokens + 6 * 4 * 10.0 / 0.03

    @pytest.mark.parametrize(
        "absurd",
        [
            {"running": 1e300, "generation_token_rate": 1e300},
            {"generation_token_rate": 1e-309},
            {"arrival_rate": 1e300},
            {"latency": {"tpot": latency(1e300), "e2e": latency(1e300)}},
        ],
        ids=["more than there can be", "hardly a token", "a flood", "an endless request"],
    )
    def test_an_absurd_moment_spoils_nothing_that_was_learned(self, absurd: Moment) -> None:
        given = settings(maxNumSeqs=40, itlSlo="1s", e2eSlo="1m")
        before = learned(day(), given)
        after = learned([{**working(10.0), **absurd}], given, before)
        assert known(service(given, after)).rate == pytest.approx(known(service(given, before)).rate, rel=0.05)
