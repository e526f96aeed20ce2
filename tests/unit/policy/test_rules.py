"""Threshold rules: how they are read, when they fire, what they add."""

from __future__ import annotations

import pytest

from scaler.policy import SettingsError
from scaler.policy.rules import METRICS, Streak, advance, parse_rules
from tests.unit.policy.world import Tape, first, latency, see, settings, text_of

WRONG = {
    "2 when waiting > 1": "+N or -N when METRIC > NUMBER",
    "+2 if waiting > 1": "+N or -N when METRIC > NUMBER",
    "+0 when waiting > 1": "step must be 1 or more",
    "+3..2 when waiting > 1": "range must rise",
    "+1 when waitng > 1": "no metric 'waitng'; known are queue_seconds, waiting",
    "+1 when waiting = 1": "a condition is METRIC > NUMBER",
    "+1 when waiting > many": "'many' is not a number",
    "+1 when ttft_p95 > 300ms": "latencies are in seconds",
    "+1 when waiting > nan": "'nan' is not a number",
    "+1 when waiting > inf": "'inf' is not a number",
    "-1 when utilization < 40": "goes from 0 to 1: say 0.4",
    "+1 when waiting > 1 for soon": "take a duration such as 90s or 5m",
    "+1 when waiting > 1 every -3s": "take a duration such as 90s or 5m",
    "+1 when waiting > 1 every 2m for 10s": "cannot read",
}


@pytest.mark.parametrize(("rule", "right"), WRONG.items())
def test_a_wrong_rule_is_named_with_what_would_be_right(rule: str, right: str) -> None:
    with pytest.raises(SettingsError) as error:
        settings(rules=f"+1 when waiting > 5; {rule}")
    (problem,) = error.value.problems
    assert problem.startswith("rules: ")
    assert rule in problem
    assert right in problem


def test_every_wrong_rule_is_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"waitng.*utilisation"):
        parse_rules("+1 when waitng > 1; -1 when waiting < 1; -1 when utilisation < 0.4")


def test_a_rule_is_read_in_all_its_parts() -> None:
    (rule,) = parse_rules("  +1..4  when queue_seconds >= 5 and waiting > 2 or ttft_p95 > 0.3  for 90s every 2m ;")
    assert (rule.up, rule.least, rule.most, rule.window_s, rule.every_s) == (True, 1, 4, 90.0, 120.0)
    assert [[str(condition) for condition in part] for part in rule.any_of] == [
        ["queue_seconds >= 5", "waiting > 2"],
        ["ttft_p95 > 0.3"],
    ]


def test_every_metric_can_be_observed() -> None:
    names = ("ttft", "itl", "tpot", "e2e", "queue_time")
    full = see(
        waiting=4,
        running=8,
        kv_cache_usage=0.5,
        gpu_utilization=0.5,
        arrival_rate=3.0,
        completion_rate=2.0,
        prompt_token_rate=10.0,
        generation_token_rate=20.0,
        latency={name: latency(1.0) for name in names},
    )
    for metric in METRICS:
        decision = first(settings(rules=f"+1 when {metric} > 0", maxNumSeqs=4), full)
        assert decision.desired == 5, metric


HOLDS = [
    ("waiting > 1 and running > 1", 2, 2, True),
    ("waiting > 1 and running > 1", 2, 1, False),
    ("waiting > 1 and running > 1", 2, None, None),
    ("waiting > 1 and running > 1", 1, None, False),
    ("waiting > 1 or running > 1", 1, 2, True),
    ("waiting > 1 or running > 1", 2, None, True),
    ("waiting > 1 or running > 1", 1, None, None),
    ("waiting > 1 or running > 1", 1, 1, False),
    ("waiting > 9 and running > 9 or waiting <= 1", 1, None, True),
]


@pytest.mark.parametrize(("when", "waiting", "running", "expected"), HOLDS)
def test_conditions_are_joined_with_three_answers(
    when: str, waiting: float | None, running: float | None, expected: bool | None
) -> None:
    (rule,) = parse_rules(f"+1 when {when}")
    assert rule.holds({"waiting": waiting, "running": running}) is expected


def fires(text: str, values: list[float | None], tick: float = 1.0) -> list[bool]:
    """At which of these ticks the rule fires."""
    (rule,) = parse_rules(text)
    streak, fired = Streak(), []
    for i, value in enumerate(values):
        streak, fire = advance(rule, streak, {"waiting": value}, i * tick)
        fired.append(fire)
    return fired


def test_a_rule_without_a_window_fires_at_once_and_each_time() -> None:
    assert fires("+1 when waiting > 5", [6, 6, 5, 6]) == [True, True, False, True]


def test_a_window_must_hold_without_a_break() -> None:
    assert fires("+1 when waiting > 5 for 3s", [6, 6, 6, 5, 6, 6, 6, 6]) == [False] * 7 + [True]


def test_after_firing_a_window_must_hold_anew() -> None:
    assert fires("+1 when waiting > 5 for 2s", [6] * 7) == [False, False, True, False, False, True, False]


def test_a_rule_rests_for_its_period() -> None:
    assert fires("+1 when waiting > 5 every 3s", [6] * 7) == [True, False, False, True, False, False, True]


def test_a_rested_window_fires_as_soon_as_the_period_is_over() -> None:
    assert fires("+1 when waiting > 5 for 2s every 4s", [6] * 8) == [
        False,
        False,
        True,
        False,
        False,
        False,
        True,
        False,
    ]


def test_unknown_neither_fires_nor_breaks_on_the_way_up() -> None:
    assert fires("+1 when waiting > 5 for 3s", [6, None, None, 6]) == [False, False, False, True]
    assert fires("+1 when waiting > 5", [None, None]) == [False, False]


def test_unknown_breaks_a_window_on_the_way_down() -> None:
    assert fires("-1 when waiting < 5 for 3s", [0, 0, None, 0, 0, 0, 0]) == [False] * 6 + [True]


def test_one_sample_does_not_fill_a_window() -> None:
    (rule,) = parse_rules("+1 when waiting > 5 for 10s")
    streak, fire = advance(rule, Streak(), {"waiting": 6}, 0.0)
    assert not fire
    assert advance(rule, Streak(since=0.0, samples=0), {"waiting": 6}, 100.0)[1] is False
    assert advance(rule, streak, {"waiting": 6}, 100.0)[1] is True


@pytest.mark.parametrize("window", ["0.5s", "1s", "1.9s"])
def test_a_window_too_short_for_its_sampling_is_refused(window: str) -> None:
    with pytest.raises(SettingsError, match=r"rules: .*too short for metricsInterval 1s.*right is 2s or more"):
        settings(rules=f"+1 when waiting > 5 for {window}")
    settings(rules="+1 when waiting > 5 for 2s; +1 when waiting > 50")


SIZES = [
    ("+1..4", 12.0, 8.0, 2),  # 4 replicas serve 8/s; 12/s arrive: 6 are needed
    ("+1..4", 40.0, 8.0, 4),
    ("+1..4", 8.0, 8.0, 1),
    ("+2..4", None, 8.0, 2),
    ("+1..4", 9.9, 3.3, 4),
    ("-1..3", 4.0, 8.0, 2),  # 2 would do
    ("-1..3", 7.9, 8.0, 1),
    ("-1..3", 0.1, 8.0, 3),
    ("-1..3", None, 8.0, 1),
]


@pytest.mark.parametrize(("step", "arrivals", "completions", "moved"), SIZES)
def test_a_range_sizes_itself_by_arrivals_over_completions(
    step: str, arrivals: float | None, completions: float, moved: int
) -> None:
    seen = see(ready=4, waiting=2, running=4, arrival_rate=arrivals, completion_rate=completions)
    decision = first(settings(rules=f"{step} when waiting > 1"), seen)
    assert decision.desired == 4 + (moved if step[0] == "+" else -moved)


def test_an_upward_rule_outweighs_every_downward_one_even_when_nothing_is_left_to_add() -> None:
    both = settings(rules="+2 when queue_seconds > 5; -1 when utilization < 0.5", maxNumSeqs=100)
    busy = {"waiting": 3, "running": 4, "completion_rate": 0.1}
    assert first(both, see(ready=4, **busy)).desired == 6
    tape = Tape(both, ready=4, start_up=60)
    assert tape.run(10, **busy) == [6] * 10


def test_the_largest_of_several_upward_rules_counts() -> None:
    assert first(settings(rules="+1 when waiting > 1; +3 when waiting > 2"), see(ready=4, waiting=3)).desired == 7


def test_one_backlog_is_asked_for_once_while_pods_start() -> None:
    tape = Tape(settings(rules="+3 when waiting > 10"), ready=2, start_up=60)
    assert tape.run(59, waiting=40) == [5] * 59
    assert "(3 of them on the way)" in text_of(tape.decision)


def test_a_greater_need_asks_for_the_difference_only() -> None:
    tape = Tape(settings(rules="+1 when waiting > 10; +3 when waiting > 30"), ready=2, start_up=60)
    assert tape.run(5, waiting=20) == [3] * 5
    assert tape.run(5, waiting=40) == [5] * 5


def test_a_downward_rule_waits_until_what_it_took_is_gone() -> None:
    """The HPA may take its own time to go down; until then the same quiet must not be counted twice."""
    down = settings(rules="-1 when ongoing < 5 for 10s")
    state_of = Tape(down, ready=6)
    assert state_of.run(11) == [6] * 10 + [5]
    lagging = [state_of.tick(ready=6, requested=5) for _ in range(60)]
    assert lagging == [5] * 60


def test_a_downward_rule_does_not_fire_while_a_pod_is_unknown() -> None:
    tape = Tape(settings(rules="-1 when ongoing < 5 for 10s"), ready=6)
    assert tape.run(60, unknown=1) == [6] * 60
    assert tape.run(3) == [5, 5, 5]  # the others were quiet all the while, and now all are known


def test_quiet_must_be_shown_anew_after_no_pod_was_seen() -> None:
    tape = Tape(settings(rules="-1 when ongoing < 5 for 10s"), ready=6)
    tape.run(10)
    tape.run(5, unknown=6)
    assert tape.run(10) == [6] * 10
    assert tape.tick() == 5


def test_steps_that_a_queue_held_back_are_not_saved_up() -> None:
    tape = Tape(settings(rules="-1 when utilization < 0.9 for 2s", maxNumSeqs=100), ready=6)
    assert tape.run(60, waiting=6) == [6] * 60
    assert min(tape.run(2, waiting=0)) >= 5


def test_rules_and_signals_together_take_the_higher() -> None:
    both = settings(rules="+2 when waiting > 10; -1 when waiting < 1 for 5s", targetOngoingRequests=10)
    assert first(both, see(ready=4, running=75)).desired == 8
    tape = Tape(both, ready=4)
    assert tape.tick(running=60, waiting=20) == 10  # the signal's 8, and the rule's 2 on top


def test_a_rule_keeps_its_streak_when_another_is_added() -> None:
    tape = Tape(settings(rules="+1 when waiting > 5 for 4s"), ready=2)
    tape.run(4, waiting=6)
    tape.settings = settings(rules="+9 when waiting > 50; +1 when waiting > 5 for 4s")
    assert tape.tick(waiting=6) == 3


def test_headroom_on_rules_is_kept_and_not_compounded() -> None:
    for ready in range(2, 40):
        tape = Tape(settings(rules="+2 when waiting > 10 every 60s", headroom="10%"), ready=ready)
        assert tape.run(30) == [ready] * 30
        tape.state = None  # a restart of the scaler must not add headroom to headroom
        assert tape.run(30) == [ready] * 30


def test_a_floor_by_schedule_is_where_rules_start_from_when_it_ends() -> None:
    quiet = settings(rules="-1 when ongoing < 5 for 10s", minReplicasSchedule="08:00-09:00 UTC = 20")
    tape = Tape(quiet, ready=6)
    assert tape.run(300, utc=8.5 * 3600)[-1] == 20
    after = tape.run(60, utc=9.5 * 3600)
    assert after[0] >= 19
    assert after[-1] >= 13


def test_quiet_rules_say_so() -> None:
    decision = first(settings(rules="+1 when waiting > 5"), see(ready=4))
    assert [(step.rule, step.replicas, step.text) for step in decision.steps] == [("signals", 4.0, "no rule fires")]
    assert decision.reason == "steady"
