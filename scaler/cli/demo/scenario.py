"""What the demo plays: traffic, pods and limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from inference.simulated import Profile, Request
from inference.simulated.traffic import BENCHMARK, Rate, arrivals

QUIET_S = 90.0
"""How long the traffic is steady before the wave."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A wave of traffic with a pulse in it, on pods that take their time to start."""

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
        """Requests per second: steady, a wave over three quarters of the run, and a pulse on its way down."""
        quiet_s, wave_s = min(QUIET_S, self.duration_s / 8), self.duration_s * 0.75
        pulse_start, pulse_end = self.duration_s * 0.65, self.duration_s * 0.7
        low, crest, pulse = 1.0, 7.0, 4.0

        def at(time: float) -> float:
            phase = (time - quiet_s) / wave_s
            wave = (crest - low) * math.sin(math.pi * phase) ** 2 if 0 <= phase < 1 else 0.0
            return low + wave + (pulse if pulse_start <= time < pulse_end else 0.0)

        return Rate(at, crest + pulse)
