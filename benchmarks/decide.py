"""One decision of each preset, with a full memory: the time that a target's tick may spend on thinking.

Beside it stands a plain threshold rule, the one that is usually written: ⌈(waiting + running) ÷ target⌉ within
limits. It tells what the explanation, the windows and the look-ahead cost; there is nothing to beat.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice

from benchmarks import Row, seconds
from scaler.policy import Latency, Limits, Load, Observation, PolicySettings, Replicas, StartUp, State, decide
from scaler.policy.parsing import parse
from scaler.policy.presets import PRESETS, with_policy

BUDGET_S = 100e-6
PODS = 8
TICKS = 1200
"""Enough to fill every window: ten minutes of half seconds."""
ROUND = 200
"""Ticks measured as one: single ones differ, since not every tick has something to say."""
SCHEDULE = "Mon-Fri 08:00-20:00 Europe/Berlin = 4; 2026-12-24 18:00-23:00 UTC = 16"


def rows() -> Iterator[Row]:
    """A row for each preset."""
    for name in PRESETS:
        settings = parse(PolicySettings, with_policy({"policy": name, "minReplicasSchedule": SCHEDULE}))
        took, rule = seconds(_round(settings), _threshold(), for_s=2.0)
        took /= ROUND
        yield Row(
            what=f"decide, preset {name}, {PODS} pods",
            measured=f"{took * 1e6:.0f} µs",
            beside=f"{rule * 1e6:.2f} µs, a bare threshold rule",
            ratio=None,
            budget=f"< {BUDGET_S * 1e6:.0f} µs",
            held=took < BUDGET_S,
        )


def _moments(interval_s: float) -> list[Observation]:
    """Ten minutes and more of a load that wanders, with a queue now and then."""
    chance = random.Random(1)
    return [_moment(i * interval_s, 90 + 30 * math.sin(i / 40) + chance.gauss(0, 6)) for i in range(TICKS)]


def _moment(time: float, ongoing: float) -> Observation:
    running = min(ongoing, PODS * 12.0)
    waiting, each = ongoing - running, running / PODS
    latency = Latency(p50=0.1, p90=0.2, p95=0.25, p99=0.4, worst_p95=0.3)
    load = Load(
        known=PODS,
        waiting=waiting,
        running=running,
        kv_cache_usage=0.05 * each,
        arrival_rate=8.0,
        completion_rate=7.5,
        prompt_token_rate=4000.0,
        generation_token_rate=2000.0,
        tokens_per_request=250.0,
        most_running=each + 1,
        full_running=each if waiting > 2 else None,
        latency={"ttft": latency, "itl": latency, "tpot": latency, "e2e": latency},
    )
    return Observation(
        time, load, Replicas(PODS, PODS, PODS), Limits(2, 64), StartUp(60.0, 90.0), 1_796_000_000.0 + time
    )


def _round(settings: PolicySettings) -> Callable[[], object]:
    """A call that decides `ROUND` ticks, one after the other; the memory is filled before."""
    state: State | None = None
    moments = _moments(settings.metrics_interval_s)
    for moment in moments:
        state, _ = decide(settings, state, moment)
    span = TICKS * settings.metrics_interval_s
    endless = (replace(moment, time=moment.time + lap * span) for lap in count(1) for moment in moments)

    def ticks() -> None:
        nonlocal state
        for moment in islice(endless, ROUND):
            state, _ = decide(settings, state, moment)

    return ticks


def _threshold() -> Callable[[], object]:
    load, limits = _moment(0.0, 100.0).load, Limits(2, 64)

    def rule() -> int:
        demand = ((load.waiting or 0.0) + (load.running or 0.0)) / 12
        return max(limits.minimum, min(limits.maximum, math.ceil(demand)))

    return rule
