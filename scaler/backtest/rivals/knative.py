"""Knative's pod autoscaler: concurrency over a stable and a panic window.

Source: knative/serving, `pkg/autoscaler/scaling/autoscaler.go` and the defaults of its `config-autoscaler`.

    stable = ceil(mean over 60 s / target),  panic = ceil(mean over 6 s / target)
    both within [floor(ready / 2), ceil(1000 · ready)]
    panicking from panic / ready ≥ 2 on, until 60 s after the last such look; then the higher, and never down

It moves the count by itself. Its queue proxies and activator count requests in flight: here those in engines and at
the gateway, and a pod that could not be read counts like the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.rival import Direct
from scaler.backtest.rivals.signals import concurrency
from scaler.backtest.rivals.windows import TimeWindow
from scaler.policy.counting import ceil


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults."""

    target: float = 70.0
    """Requests in flight for each pod: 100, of which 70 % are to be used."""
    stable_window_s: float = 60.0
    panic_window_s: float = 6.0
    panic_threshold: float = 2.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    scale_down_delay_s: float = 0.0
    tick_s: float = 2.0


class Kpa(Direct[Settings]):
    """Stable mode, panic mode. Another signal than concurrency goes into `observe`."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "knative") -> None:
        super().__init__(setup, settings, name)
        self.sync_s = settings.tick_s
        self._stable, self._panic = TimeWindow(settings.stable_window_s), TimeWindow(settings.panic_window_s)
        self._delayed = TimeWindow(settings.scale_down_delay_s)
        self._panic_since: float | None = None
        self._panic_pods = 0
        self._started = False

    def observe(self, seen: Seen) -> float | None:
        """Return the signal, summed over pods; None where it is unknown, and nothing is decided."""
        return concurrency(seen)

    def want(self, seen: Seen) -> float | None:
        """Return the pods of the stable window, or in panic the most that either window asked for."""
        value, ready, s = self.observe(seen), max(1, seen.observation.replicas.ready), self.settings
        if value is None:
            return None
        if not self._started and ready > 1:  # a new autoscaler knows no past, so it keeps what is there
            self._panic_since, self._panic_pods = seen.time, ready
        self._started = True
        self._stable.add(seen.time, value)
        self._panic.add(seen.time, value)
        least, most = int(ready / s.max_scale_down_rate), ceil(s.max_scale_up_rate * ready)
        stable, panic = ceil(self._stable.mean() / s.target), ceil(self._panic.mean() / s.target)
        desired = min(max(stable, least), most)
        if panic / ready >= s.panic_threshold:
            self._panic_since = seen.time
        elif self._panic_since is not None and self._panic_since + s.stable_window_s < seen.time:
            self._panic_since, self._panic_pods = None, 0
        if self._panic_since is not None:
            desired = self._panic_pods = max(desired, min(max(panic, least), most), self._panic_pods)
        self._delayed.add(seen.time, desired)
        return self._delayed.maximum()
