"""Who gets how much of a budget of GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.policy.budget import Claim, allot

CASES: dict[str, tuple[int, dict[str, Claim], dict[str, int]]] = {
    "enough for all": (10, {"a": Claim(4, 1), "b": Claim(6, 1)}, {"a": 4, "b": 6}),
    "equals share by what they want": (9, {"a": Claim(6, 1), "b": Claim(12, 1)}, {"a": 3, "b": 6}),
    "the higher priority first": (8, {"a": Claim(6, 1), "b": Claim(6, 1, priority=1)}, {"a": 2, "b": 6}),
    "a minimum before any priority": (4, {"a": Claim(6, 3), "b": Claim(6, 0, priority=1)}, {"a": 3, "b": 1}),
    "minimums beyond the budget": (2, {"a": Claim(6, 3), "b": Claim(6, 1)}, {"a": 3, "b": 1}),
    "a large replica that does not fit leaves its place": (
        7,
        {"a": Claim(2, 0, gpus=4), "b": Claim(9, 0)},
        {"a": 1, "b": 3},
    ),
    "one who wants nothing": (4, {"a": Claim(0, 0), "b": Claim(6, 0)}, {"a": 0, "b": 4}),
    "nobody": (4, {}, {}),
}


@pytest.mark.parametrize(("gpus", "claims", "granted"), CASES.values(), ids=CASES)
def test_what_is_granted(gpus: int, claims: dict[str, Claim], granted: dict[str, int]) -> None:
    assert allot(gpus, claims) == granted


@st.composite
def claims(draw: st.DrawFn) -> dict[str, Claim]:
    found = {}
    for name in "abcdef"[: draw(st.integers(0, 6))]:
        minimum = draw(st.integers(0, 3))
        wanted = minimum + draw(st.integers(0, 20))
        found[name] = Claim(wanted, minimum, draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(0, 2)))
    return found


def used(granted: dict[str, int], of: dict[str, Claim]) -> int:
    return sum(count * of[name].gpus for name, count in granted.items())


@given(st.integers(0, 100), claims())
def test_everybody_stays_between_minimum_and_want_and_together_within_the_budget(
    gpus: int, of: dict[str, Claim]
) -> None:
    granted = dict(allot(gpus, of))
    assert granted.keys() == of.keys()
    assert all(claim.minimum <= granted[name] <= claim.wanted for name, claim in of.items())
    assert used(granted, of) <= max(gpus, used({name: claim.minimum for name, claim in of.items()}, of))


@given(st.integers(0, 100), claims())
def test_what_somebody_lacks_would_not_fit_in_what_is_left(gpus: int, of: dict[str, Claim]) -> None:
    granted = dict(allot(gpus, of))
    left = gpus - used(granted, of)
    assert all(granted[name] == claim.wanted or claim.gpus > left for name, claim in of.items())


def one_by_one(gpus: int, of: dict[str, Claim]) -> dict[str, int]:
    """The rule as it is told: each replica to whoever has the smallest part of what it wants, as far as it fits."""
    granted = {name: claim.minimum for name, claim in of.items()}
    for priority in sorted({claim.priority for claim in of.values()}, reverse=True):
        left = gpus - used(granted, of)
        equals = [name for name, claim in of.items() if claim.priority == priority]
        while equals:
            name = min(equals, key=lambda name: granted[name] / max(1, of[name].wanted))
            if granted[name] < of[name].wanted and of[name].gpus <= left:
                granted[name] += 1
                left -= of[name].gpus
            else:
                equals.remove(name)
    return granted


@given(st.integers(0, 100), claims())
def test_each_replica_goes_to_whoever_has_the_smallest_part_of_what_it_wants(gpus: int, of: dict[str, Claim]) -> None:
    assert allot(gpus, of) == one_by_one(gpus, of)


def test_a_budget_that_nobody_has_is_shared_like_any_other() -> None:
    of = {"a": Claim(10_000_000, 0), "b": Claim(20_000_000, 0), "c": Claim(5, 0, gpus=100_000)}
    granted = allot(10_000_000, of)
    assert 9_900_000 < used(dict(granted), of) <= 10_000_000
    assert granted["b"] == pytest.approx(2 * granted["a"], rel=0.05)


@given(st.integers(0, 100), claims(), st.integers(0, 30))
def test_what_a_lower_priority_wants_takes_nothing_from_a_higher(gpus: int, of: dict[str, Claim], more: int) -> None:
    with_low = {**of, "low": Claim(more, 0, priority=-1)}
    granted = dict(allot(gpus, with_low))
    del granted["low"]
    assert granted == allot(gpus, of)
