"""What the seconds of a busy replica go to, told apart by least squares."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.policy.time_budget import TimeBudget

STEP_S, TOKEN_S, PROMPT_TOKEN_S = 0.02, 0.001, 0.0001
Second = tuple[float, float, float]
"""Steps, tokens and prompt tokens in it."""


def second(running: float, prompt_tokens: float) -> Second:
    """A second of an engine that runs so many requests and reads so many prompt tokens."""
    tokens = running * (1 - PROMPT_TOKEN_S * prompt_tokens) / (STEP_S + TOKEN_S * running)
    return tokens / running, tokens, prompt_tokens


def of(seconds: Iterable[Second], memory: float = 1e6) -> TimeBudget:
    budget = TimeBudget()
    for each in seconds:
        budget = budget.add(*each, seconds=1.0, memory=memory)
    return budget


def balanced(running: float) -> Second:
    """A second in which two prompt tokens come with each generated one."""
    pace_s = STEP_S + (TOKEN_S + 2 * PROMPT_TOKEN_S) * running
    return 1 / pace_s, running / pace_s, 2 * running / pace_s


VARIED = [second(float(running), prompt) for running in range(1, 60) for prompt in (0.0, 1000.0, 4000.0, 8000.0)]


def test_seconds_that_vary_tell_the_three_costs_apart() -> None:
    assert of(VARIED).costs() == pytest.approx((STEP_S, TOKEN_S, PROMPT_TOKEN_S), rel=0.1)


def test_the_pace_holds_the_prompts_that_come_with_each_token() -> None:
    found = of(balanced(float(running)) for running in range(1, 60)).pace(2.0)
    assert found == pytest.approx((STEP_S, TOKEN_S + 2 * PROMPT_TOKEN_S), rel=0.1)


@pytest.mark.parametrize(
    "odd",
    [[second(40.0, 9500.0)] * 60, [second(40.0, 0.0)] * 60],
    ids=["newcomers fill the engine", "a queue drains"],
)
def test_what_is_out_of_balance_for_a_while_does_not_bend_the_pace(odd: list[Second]) -> None:
    calm = [balanced(float(running)) for running in range(1, 30) for _ in range(10)]
    before, after = of(calm).pace(2.0), of([*calm, *odd]).pace(2.0)
    assert before is not None
    assert after is not None
    assert after[0] + 40 * after[1] == pytest.approx(before[0] + 40 * before[1], rel=0.1)


def test_at_one_load_each_request_beside_costs_in_full() -> None:
    pace = of([balanced(8.0)] * 20).pace(2.0)
    assert pace is not None
    assert pace[0] + 8 * pace[1] == pytest.approx(1 / balanced(8.0)[0], rel=0.01)
    assert pace[0] < 0.05 * 8 * pace[1]


def test_before_anything_was_seen_there_is_no_pace() -> None:
    assert TimeBudget().pace(2.0) is None
    assert of([(0.0, 0.0, 100.0)]).pace(2.0) is None


def test_engines_that_tell_no_prompt_tokens_have_a_pace_all_the_same() -> None:
    pace = of((steps, tokens, 0.0) for steps, tokens, _ in map(balanced, map(float, range(1, 60)))).pace(0.0)
    assert pace == pytest.approx((STEP_S, TOKEN_S + 2 * PROMPT_TOKEN_S), rel=0.1)


def test_old_seconds_are_forgotten_as_new_ones_come() -> None:
    slower = [(steps / 3, tokens / 3, prompt_tokens / 3) for steps, tokens, prompt_tokens in VARIED]
    after = of([*VARIED, *slower * 3], memory=60.0)
    assert after.costs() == pytest.approx(of(slower * 3, memory=60.0).costs(), rel=0.01)


rates = st.one_of(st.just(0.0), st.floats(1e-300, 1e12))


@given(st.lists(st.tuples(rates, rates, rates), min_size=1, max_size=20), rates)
def test_whatever_was_seen_no_cost_is_below_zero(seconds: list[Second], prompt_tokens: float) -> None:
    budget = of(seconds)
    assert min(budget.costs()) >= 0
    pace = budget.pace(prompt_tokens)
    assert pace is None or min(pace) >= 0


@given(st.lists(st.floats(0.1, 300), min_size=1, max_size=40), st.floats(1, 10))
def test_beyond_what_was_seen_it_promises_no_faster_pace_than_there_is(loads: list[float], beyond: float) -> None:
    pace = of(map(balanced, loads)).pace(2.0)
    assert pace is not None
    running = beyond * max(loads)
    assert pace[0] + pace[1] * running >= (1 - 1e-2) / balanced(running)[0]
