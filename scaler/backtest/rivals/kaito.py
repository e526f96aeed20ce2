"""kaito's KEDA scaler: two thresholds that must both be crossed, and one pod in five minutes.

Source: keda-kaito-scaler, `pkg/scaledobject/builder.go` (composite mode) and the example of its README.

    ready and queue > 5 and P95 queue time > 2.0 s  → 2.0 · pods
    queue < 1 and P95 queue time < 0.5 s            → 0.5 · pods
    else                                            → 1.0 · pods

The queue is the mean of the pods. The formula is a metric of type Value, so it multiplies the ready pods; the HPA makes
one pod of it either way, up after a minute of agreement, each five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.hpa import Behavior, Hpa, ScalingPolicy
from scaler.backtest.rivals.rival import Rival
from scaler.backtest.rivals.signals import per_ready_pod

_ONE = (ScalingPolicy("Pods", 1, 300.0),)
_UP, _DOWN = Behavior(60.0, _ONE), Behavior(300.0, _ONE)


@dataclass(frozen=True, slots=True)
class Settings:
    """The example's."""

    queue_up: float = 5.0
    queue_down: float = 1.0
    """Waiting requests, mean over pods."""
    queue_time_up_s: float = 2.0
    queue_time_down_s: float = 0.5
    """P95 over the requests that left the queue."""


class Kaito(Rival[Settings]):
    """Careful steps of one."""

    scrape_interval_s = 0.0
    look_back_s = 300.0

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "kaito") -> None:
        super().__init__(setup, settings, name)

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the HPA that the scaler makes."""
        return Hpa(minimum, maximum, _UP, _DOWN)

    def want(self, seen: Seen) -> float | None:
        """Return the ready pods times the formula; None, an error to KEDA, where no pod could be read."""
        queue, replicas, s = per_ready_pod(seen, lambda page: page.waiting), seen.observation.replicas, self.settings
        if queue is None:
            return None
        latency = seen.observation.load.latency.get("queue_time")
        queue_time = latency.p95 if latency else 0.0  # a histogram without observations is no pressure
        if replicas.ready == replicas.requested and queue > s.queue_up and queue_time > s.queue_time_up_s:
            return 2.0 * replicas.ready
        if queue < s.queue_down and queue_time < s.queue_time_down_s:
            return 0.5 * replicas.ready
        return replicas.current
