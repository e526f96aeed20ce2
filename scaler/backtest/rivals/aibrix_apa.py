"""AIBrix' APA: the present count times use over target, with tolerances, and at most twice or half of it.

Source: AIBrix, `pkg/controller/podautoscaler/algorithm/apa.go`, the defaults of its scaling context, and
`samples/autoscaling/apa.yaml` (KV cache usage, target 0.5, tolerances 0.1 up and 0.2 down, window 30 s).

    r = mean KV cache usage of a pod / target
    r > 1.1 → min(ceil(n · r), ceil(2n));  r < 0.8 → max(ceil(n · r), floor(n / 2));  else n

n counts pods that are starting, and r only those that are ready, without credit. The cool-down of five minutes is as
intended, the highest recommendation in it; as written it takes the lowest.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.rival import Direct
from scaler.backtest.rivals.signals import per_ready_pod
from scaler.backtest.rivals.windows import TimeWindow
from scaler.policy.counting import ceil


@dataclass(frozen=True, slots=True)
class Settings:
    """The sample's, and the defaults where it is silent."""

    target: float = 0.5
    """KV cache usage, 0 to 1."""
    up_tolerance: float = 0.1
    down_tolerance: float = 0.2
    max_scale_up_rate: float = 2.0
    max_scale_down_rate: float = 2.0
    window_s: float = 30.0
    scale_down_cooldown_s: float = 300.0
    resync_s: float = 10.0


class AibrixApa(Direct[Settings]):
    """Proportional to use."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "aibrix-apa") -> None:
        super().__init__(setup, settings, name)
        self.sync_s = settings.resync_s
        self._use = TimeWindow(settings.window_s)
        self._recommended = TimeWindow(settings.scale_down_cooldown_s)

    def want(self, seen: Seen) -> float | None:
        """Return the highest recommendation of the cool-down; None where no pod could be read."""
        use = per_ready_pod(seen, lambda page: page.kv_cache_usage)
        if use is None:
            return None
        self._use.add(seen.time, use)
        self._recommended.add(seen.time, recommend(self._use.mean(), seen.observation.replicas.current, self.settings))
        return self._recommended.maximum()


def recommend(use: float, n: int, settings: Settings = Settings()) -> int:
    """Return the count for a mean `use` (0 to 1) of `n` pods."""
    ratio = use / settings.target
    if ratio > 1 + settings.up_tolerance:
        return min(ceil(n * ratio), ceil(n * settings.max_scale_up_rate))
    if ratio < 1 - settings.down_tolerance:
        return max(ceil(n * ratio), int(n / settings.max_scale_down_rate))
    return n
