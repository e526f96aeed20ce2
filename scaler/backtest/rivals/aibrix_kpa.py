"""AIBrix' KPA as intended: Knative's rule over the KV cache in use.

Source: AIBrix, `pkg/controller/podautoscaler/algorithm/kpa.go`, the defaults of its scaling context, and
`samples/autoscaling/kpa.yaml` (KV cache usage, target 0.5, scale-down delay 3 min).

As written it divides the *mean* use of a pod by the target of a pod, so that the want does not grow with the pods, and
keeps no highest count in panic. This is what it is meant to be: the sum over pods, and never down while panicking.
"""

from __future__ import annotations

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.knative import Kpa, Settings
from scaler.backtest.rivals.signals import per_ready_pod

DEFAULTS = Settings(
    target=0.5,
    stable_window_s=180.0,
    panic_window_s=60.0,
    max_scale_up_rate=2.0,
    scale_down_delay_s=180.0,
    tick_s=10.0,
)


class AibrixKpa(Kpa):
    """Every replica's KV cache half full."""

    def __init__(self, setup: Setup, settings: Settings = DEFAULTS, name: str = "aibrix-kpa") -> None:
        super().__init__(setup, settings, name)

    def observe(self, seen: Seen) -> float | None:
        """Return the sum of KV cache usage over ready pods, each 0 to 1."""
        mean = per_ready_pod(seen, lambda page: page.kv_cache_usage)
        return None if mean is None else mean * seen.observation.replicas.ready
