"""What the demo plays: traffic, pods and limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from inference.simulated import Profile, Request
from inference.simulated.traffic import BENCHMARK, Rate, arrivals

QUIET_S = 90.0
"""How long the traffic is steady before the first wave."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A wave of traffic, then a pulse, on pods that take their time to start."""

    duration_s: float
    start_up_s: float
    seed: int
    profile: Profile
    minimum: int = 2
    maximum: int = 12

    def traffic(self) -> Iterator[Request]:
        """The requests of the run: the same for everyone who is measured on it."""
        return arrivals(self.rate, self.duration_s, mix=(BENCHMARK,), seed=self.seed)

    @property
    def rate(self) -> Rate:
        """Requests per second: steady, one wave over half of the run, and a pulse in the last quarter."""
        wave_s = self.duration_s / 2
        pulse_start, pulse_end = self.duration_s * 0.72, self.duration_s * 0.85
        low, crest, pulse = 1.0, 6.0, 7.0

        def at(time: float) -> float:
            if pulse_start <= time < pulse_end:
                return pulse
            phase = (time - min(QUIET_S, self.duration_s / 8)) / wave_s
            return low + (crest - low) * math.sin(math.pi * phase) ** 2 if 0 <= phase < 1 else low

        return Rate(at, max(crest, pulse))
