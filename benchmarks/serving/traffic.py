"""The traffic and the replicas of these tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from inference.simulated import Profile
from inference.simulated.traffic import BENCHMARK, CHAT, LONG_CONTEXT, RequestClass

PLAYED_S = 600.0
SEEDS = (1, 2, 3)
TTFT_S, TPOT_S = 3.0, 0.1
"""A request keeps its objectives when its first token comes within the one, and the others at the pace of the other."""
LONG_FROM = 2000
"""Prompt tokens."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of it; `rates` are those of one replica, in requests/s: below, at and above what it can do."""

    name: str
    mix: Sequence[RequestClass]
    rates: tuple[float, float, float]


EVEN = Traffic("4,000 + 1,000 tokens", (BENCHMARK,), (1.4, 1.6, 2.2))
MIXED = Traffic("nine chats to one long context", (replace(CHAT, weight=9.0), LONG_CONTEXT), (3.0, 4.5, 9.0))
TRAFFIC = (EVEN, MIXED)


def slowed(profile: Profile, factor: float) -> Profile:
    """The same replica with steps that take so many times as long, as on a GPU that is throttled."""
    steps = profile.step_time
    times = {field.name: getattr(steps, field.name) * factor for field in fields(steps) if field.name != "jitter"}
    return replace(profile, step_time=replace(steps, **times))
