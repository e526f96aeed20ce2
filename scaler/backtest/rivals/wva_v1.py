"""llm-d's Workload Variant Autoscaler, version 1: one up or down by the spare room of pods that are not saturated.

Source: llm-d-workload-variant-autoscaler, `internal/saturation/analyzer.go` (formerly `internal/capacity`).

    saturated   kv ≥ 0.80 or queue ≥ 5
    spare       mean over the others of (0.80 − kv) and (5 − queue)
    up          +1 where spare kv < 0.10 or spare queue < 3
    down        −1 where both would still hold with one pod fewer, and two or more are not saturated

Nothing is decided while the count is not what was desired, or pods are without metrics. A step of one that the HPA's
tolerance swallows (10 → 11) is therefore waited for without end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.wva import WorstMinute, Wva


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults of its ConfigMap."""

    kv_threshold: float = 0.80
    queue_threshold: float = 5.0
    kv_spare: float = 0.10
    """Spare share of the KV cache below which a replica is added."""
    queue_spare: float = 3.0
    """Spare places in the queue below which a replica is added."""
    loop_s: float = 60.0


class WvaV1(Wva[Settings]):
    """Steps of one, blocked in transition."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "wva-v1") -> None:
        super().__init__(setup, settings, name, settings.loop_s)

    def decide(self, seen: Seen, replicas: list[WorstMinute]) -> int:
        """Return one more, one fewer, or the same."""
        current = seen.observation.replicas.current
        if self.desired is not None and (self.desired != current or len(replicas) != current):
            return self.desired
        return current + step(replicas, self.settings)


def step(replicas: list[WorstMinute], settings: Settings = Settings()) -> int:
    """Return +1, −1 or 0 for the pods' worst minutes."""
    room = [r for r in replicas if r.kv_usage < settings.kv_threshold and r.waiting < settings.queue_threshold]
    if not room:
        return 1
    kv, queue = math.fsum(r.kv_usage for r in room), math.fsum(r.waiting for r in room)

    def enough(pods: int) -> bool:
        spare_kv, spare_queue = settings.kv_threshold - kv / pods, settings.queue_threshold - queue / pods
        return spare_kv >= settings.kv_spare and spare_queue >= settings.queue_spare

    if not enough(len(room)):
        return 1
    return -1 if len(room) >= 2 and enough(len(room) - 1) else 0
