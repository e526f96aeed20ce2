"""Demand signals: how many replicas the load needs, each in its own file. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scaler.policy.capacity import Capacity
from scaler.policy.observation import Observation
from scaler.policy.settings import PolicySettings
from scaler.policy.signals import kv_cache, ongoing, queue, tokens, work
from scaler.policy.signals.demand import Demand

Signal = Callable[[PolicySettings, Capacity, Observation], Demand | None]
"""Returns the demand, or None when what it needs is unknown."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A signal and the question whether the settings ask for it."""

    asked: Callable[[PolicySettings], bool]
    demand: Signal


SIGNALS: Mapping[str, Entry] = {
    "ongoing requests": Entry(lambda s: s.target_ongoing_requests is not None, ongoing.demand),
    "work": Entry(ongoing.is_default, work.demand),
    "queue seconds": Entry(lambda s: s.target_queue_seconds is not None, queue.demand),
    "KV cache": Entry(lambda s: s.target_kv_cache_usage is not None, kv_cache.demand),
    "tokens": Entry(lambda s: s.target_tokens_per_second is not None, tokens.demand),
}

__all__ = ["SIGNALS", "Demand", "Entry", "Signal"]
