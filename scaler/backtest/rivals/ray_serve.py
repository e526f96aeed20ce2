"""Ray Serve's autoscaling: ongoing requests over their target, held for a delay before it counts.

Source: Ray, `python/ray/serve/autoscaling_policy.py` and `config.py` (2.60), and its autoscaling guide.

    wish = ceil(running + factor · (ongoing / target − running))

A wish must differ from the target count in one direction for the whole delay, without a break; then the newest one is
taken and the delay begins anew. Ray moves the count by itself. Handles report once in ten seconds a mean over thirty;
here those are the requests in engines and at the gateway, looked at each five seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.need import ongoing
from scaler.backtest.rivals.rival import Direct
from scaler.backtest.rivals.signals import concurrency
from scaler.backtest.rivals.windows import TimeWindow
from scaler.policy.counting import ceil


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults of `AutoscalingConfig`."""

    target_ongoing_requests: float = 2.0
    upscale_delay_s: float = 30.0
    downscale_delay_s: float = 600.0
    upscaling_factor: float = 1.0
    downscaling_factor: float = 1.0
    look_back_period_s: float = 30.0


class RayServe(Direct[Settings]):
    """One target, two delays."""

    scrape_interval_s = 10.0
    sync_s = 5.0

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "ray-serve") -> None:
        super().__init__(setup, settings, name)
        self._ongoing = TimeWindow(settings.look_back_period_s)
        self._direction, self._since = 0, 0.0

    def want(self, seen: Seen) -> float | None:
        """Return the target count: the present one until a wish has held for its delay."""
        total, target = concurrency(seen), seen.observation.replicas.requested
        if total is None:
            return None
        if not seen.observation.replicas.ready:
            return max(target, 1 if total else 0)
        self._ongoing.add(seen.time, total)
        wish = max(self.setup.minimum, min(self.setup.maximum, self._wish(seen.observation.replicas.ready)))
        direction = (wish > target) - (wish < target)
        if direction != self._direction:
            self._direction, self._since = direction, seen.time
        delay = self.settings.upscale_delay_s if direction > 0 else self.settings.downscale_delay_s
        if not direction or seen.time - self._since < delay:
            return target
        self._direction = 0
        return wish

    def _wish(self, running: int) -> int:
        raw = self._ongoing.mean() / self.settings.target_ongoing_requests
        factor = self.settings.upscaling_factor if raw > running else self.settings.downscaling_factor
        wish = ceil(running + factor * (raw - running))
        return wish - 1 if wish == running > ceil(raw) else wish  # a small factor must not hold a fall forever


def tuned(setup: Setup) -> RayServe:
    """Return Ray Serve with the target that its guide would have one measure: 80 % of what a replica holds."""
    return RayServe(setup, Settings(target_ongoing_requests=ongoing(setup, use=0.8)), "ray-serve-tuned")
