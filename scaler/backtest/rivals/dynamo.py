"""NVIDIA Dynamo's planner with its easy thresholds: one up if any engine is full, one down if all are not.

Source: Dynamo, `components/src/dynamo/planner/core/load_scaling.py` (`_agg_easy_decision`) and the planner's
configuration reference: `optimization_target` throughput (the default) or latency, each 5 s.

    use  = (scheduled + queued decode KV tokens + queued prefill tokens) / KV tokens, of each engine
    +1 where any use > up,  −1 where all use < down

While a scaling is in progress it only observes. Its per-step engine metrics are read here as KV cache usage and as
waiting requests times the mean prompt of the last five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.rival import Direct
from scaler.backtest.rivals.signals import PromptMeter, pages


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds on the use of an engine's KV room, queue included."""

    up: float
    down: float
    interval_s: float = 5.0


THROUGHPUT = Settings(up=1.0, down=0.6)
LATENCY = Settings(up=0.4, down=0.1)


class Dynamo(Direct[Settings]):
    """Steps of one, each after the last has arrived."""

    def __init__(self, setup: Setup, settings: Settings = THROUGHPUT, name: str = "dynamo-throughput") -> None:
        super().__init__(setup, settings, name)
        self.sync_s = settings.interval_s
        self._prompts = PromptMeter()

    def want(self, seen: Seen) -> float | None:
        """Return one more or one fewer; None where nothing changes, or engines are starting, stopping or unknown."""
        replicas, prompt = seen.observation.replicas, self._prompts.measure(seen).tokens
        known = [page for page in pages(seen).values() if page.kv_cache_usage is not None and page.waiting is not None]
        moving = replicas.ready != replicas.requested or replicas.terminating > 0
        if not known or moving or len(known) != replicas.ready:
            return None
        use = [
            (page.kv_cache_usage or 0.0) + (page.waiting or 0.0) * prompt / self.setup.profile.kv_tokens
            for page in known
        ]
        if max(use) > self.settings.up:
            return replicas.ready + 1
        if replicas.ready > 1 and max(use) < self.settings.down:
            return replicas.ready - 1
        return None
