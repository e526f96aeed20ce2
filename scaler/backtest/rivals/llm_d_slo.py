"""llm-d's SLO-aware law: latency over its objective, smoothed, moves the count out of a band.

Source: llm-d, `guides/workload-autoscaling/README.slo-aware.md`, with its recording rules and HPA behavior.

    s = mean over 45 s of min(max(P90 TTFT / SLO, P90 TPOT / SLO), 2), 0 without traffic
    c = r/n while 0 < r < n, else 1           (n provisioned, r ready)
    d = n + ceil(n · (s·c/0.55 − 1))          where s > 0.55
        n − floor(n · (1 − s/0.40))           where s < 0.40
        n                                     in between

As published: the test uses s and the size s·c, so that d can be below n while pods warm up. The router's latency
histograms are its actual ones here (the guide's own fallback for predicted ones), from the pods' pages; the
inter-token latency stands in for its TPOT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.hpa import Behavior, Hpa, ScalingPolicy
from scaler.backtest.rivals.rival import Rival
from scaler.backtest.rivals.windows import TimeWindow

_UP = Behavior(30.0, (ScalingPolicy("Percent", 100, 60.0), ScalingPolicy("Pods", 4, 60.0)))
_DOWN = Behavior(180.0, (ScalingPolicy("Pods", 1, 120.0),))


@dataclass(frozen=True, slots=True)
class Settings:
    """Those that the guide was benchmarked with."""

    up: float = 0.55
    down: float = 0.40
    clamp: float = 2.0
    """Most that one look may say."""
    smoothing_s: float = 45.0


class LlmDSlo(Rival[Settings]):
    """Five lines of control law over the pool's P90 latencies of the last minute."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "llm-d-slo") -> None:
        super().__init__(setup, settings, name)
        self._objectives = {"ttft": setup.ttft_slo_s, "itl": setup.tpot_slo_s}
        self._saturation = TimeWindow(settings.smoothing_s)

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the guide's HPA: fast up, one pod in two minutes down."""
        return Hpa(minimum, maximum, _UP, _DOWN)

    def want(self, seen: Seen) -> float:
        """Return the law's d."""
        latency = seen.observation.load.latency
        worst = max((latency[n].p90 / slo for n, slo in self._objectives.items() if n in latency), default=0.0)
        self._saturation.add(seen.time, min(worst, self.settings.clamp))
        replicas = seen.observation.replicas
        return law(self._saturation.mean(), replicas.current, replicas.ready, self.settings)


def law(s: float, n: int, r: int, settings: Settings = Settings()) -> float:
    """Return the wanted replicas for saturation `s`, `n` provisioned and `r` ready replicas."""
    credit = r / n if 0 < r < n else 1.0
    if s > settings.up:
        return n + math.ceil(n * (s * credit / settings.up - 1))
    if s < settings.down:
        return n - math.floor(n * (1 - s / settings.down))
    return n
