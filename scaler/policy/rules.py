"""Threshold rules: `+2 when queue_seconds > 5 for 10s every 120s; -1 when utilization < 0.4 for 5m`.

A rule asks for `k` replicas more or fewer once its condition has held without a break for its window (`for`), at
most once in its period (`every`). `+1..2` sizes itself between the two by how much faster requests arrive than
they finish. What is unknown neither fulfils a condition nor, on the way up, breaks one.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scaler.policy.counting import ceil
from scaler.policy.parsing import first_of, parse_count, parse_duration, parse_number
from scaler.quoting import quoted

Values = Mapping[str, float | None]

_LATENCIES = tuple(
    f"{worst}{name}_{quantile}"
    for name in ("ttft", "itl", "tpot", "e2e", "queue_time")
    for worst, quantile in (("", "p50"), ("", "p90"), ("", "p95"), ("", "p99"), ("worst_", "p95"))
)
METRICS = (
    "queue_seconds",
    "waiting",
    "running",
    "ongoing",
    "ongoing_per_replica",
    "request_rate",
    "request_rate_per_replica",
    "token_rate",
    "utilization",
    "kv_cache_usage",
    "gpu_utilization",
    *_LATENCIES,
)
"""What a condition may name. Seconds for queues and latencies, per second for rates, 0 to 1 for use."""

_SHARES = frozenset(("utilization", "kv_cache_usage", "gpu_utilization"))
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_RULE = re.compile(
    r"(?P<sign>[+-])(?P<least>\d+)(?:\.\.(?P<most>\d+))?\s+when\s+(?P<when>.+?)"
    r"(?:\s+for\s+(?P<window>\S+))?(?:\s+every\s+(?P<every>\S+))?"
)
_CONDITION = re.compile(r"(\w+)\s*(>=|<=|>|<)\s*(\S+)")


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison, say `queue_seconds > 5`."""

    metric: str
    sign: str
    threshold: float

    def holds(self, values: Values) -> bool | None:
        """Compare; None when the value is unknown."""
        value = values.get(self.metric)
        return None if value is None or math.isnan(value) else _OPERATORS[self.sign](value, self.threshold)

    def __str__(self) -> str:
        return f"{self.metric} {self.sign} {self.threshold:g}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `least` and `most` are the replicas to add (or, with `up` False, to take away)."""

    up: bool
    least: int
    most: int
    any_of: tuple[tuple[Condition, ...], ...]
    """Alternatives (`or`), each of which is conditions that must hold together (`and`)."""
    window_s: float
    every_s: float
    text: str

    def holds(self, values: Values) -> bool | None:
        """Tell whether the condition holds now; None when that cannot be known."""
        unknown = False
        for conditions in self.any_of:
            results = [condition.holds(values) for condition in conditions]
            if all(results):
                return True
            unknown = unknown or (None in results and False not in results)
        return None if unknown else False

    def size(self, values: Values, base: float) -> int:
        """Return how many replicas the rule moves from `base`, between `least` and `most`."""
        needed = values.get("replicas_for_arrivals")
        if needed is None:
            return self.least
        distance = ceil(needed) - base if self.up else base - ceil(needed)
        return max(self.least, min(self.most, ceil(distance) if self.up else math.floor(distance)))


@dataclass(frozen=True, slots=True)
class Streak:
    """What a rule remembers: since when its condition holds without a break, how often seen, when it last fired."""

    since: float | None = None
    samples: int = 0
    fired: float | None = None


MIN_SAMPLES = 2
"""A window is believed when it holds at least this many samples: sampling at most half as often as acting."""


def advance(rule: Rule, streak: Streak, values: Values, now: float, may_fire: bool = True) -> tuple[Streak, bool]:
    """Carry the rule's streak to `now` (seconds) and tell whether it fires, which `may_fire` can put off."""
    holds = rule.holds(values)
    if holds is None and rule.up:
        return streak, False
    if not holds:
        return Streak(fired=streak.fired), False
    since = now if streak.since is None else streak.since
    streak = Streak(since, streak.samples + 1, streak.fired)
    rested = streak.fired is None or now - streak.fired >= rule.every_s
    held = now - since >= rule.window_s and (rule.window_s == 0 or streak.samples >= MIN_SAMPLES)
    if not (may_fire and rested and held):
        return streak, False
    return Streak(fired=now), True


def parse_rules(value: object) -> tuple[Rule, ...]:
    """Read rules separated by `;`. Raises ValueError naming every wrong rule and what would be right."""
    if isinstance(value, tuple):
        return value
    rules, problems = [], []
    for text in str(value).split(";"):
        if text.strip():
            try:
                rules.append(_rule(" ".join(text.split())))
            except ValueError as error:
                problems.append(str(error))
    if problems:
        raise ValueError("; ".join(first_of(problems)))
    return tuple(rules)


def _rule(text: str) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(
            f"cannot read {quoted(text)}: a rule is +N or -N when METRIC > NUMBER [and …] [for 10s] [every 2m]"
        )
    try:
        least, most = (parse_count(match[key] or match["least"]) for key in ("least", "most"))
    except ValueError as error:
        raise ValueError(f"{quoted(text)}: the step is {error}") from None
    if least < 1 or most < least:
        raise ValueError(f"{quoted(text)}: the step must be 1 or more, and a range must rise")
    any_of = tuple(
        tuple(_condition(part, text) for part in re.split(r"\s+and\s+", alternative))
        for alternative in re.split(r"\s+or\s+", match["when"])
    )
    try:
        window_s, every_s = (parse_duration(match[key] or 0) for key in ("window", "every"))
    except ValueError:
        raise ValueError(f"{quoted(text)}: `for` and `every` take a duration such as 90s or 5m") from None
    return Rule(match["sign"] == "+", least, most, any_of, window_s, every_s, text)


def _condition(part: str, rule: str) -> Condition:
    match = _CONDITION.fullmatch(part.strip())
    if match is None:
        raise ValueError(
            f"{quoted(rule)}: cannot read {quoted(part)}: a condition is METRIC > NUMBER, `for` and `every` come last"
        )
    metric, sign, text = match.groups()
    if metric not in METRICS:
        raise ValueError(f"{quoted(rule)}: no metric {quoted(metric)}; known are {', '.join(METRICS)}")
    try:
        threshold = parse_number(text)
    except ValueError as error:
        raise ValueError(f"{quoted(rule)}: {quoted(text)} is {error}; latencies are in seconds") from None
    if metric in _SHARES and threshold > 1:
        raise ValueError(f"{quoted(rule)}: {metric} goes from 0 to 1: say {threshold / 100:g}")
    return Condition(metric, sign, threshold)
