"""A straight line through what was observed. It forgets slowly, and does not trust a slope that it has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

_CAUTION = 0.02
"""Weight, as a share of all, that pulls the intercept to 0: until x has varied by a seventh of its mean, y counts as
proportional to x. For a latency over a load that is the careful side: it never promises more than was seen."""


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope · x by weighted least squares, kept as sums. Neither is below 0."""

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float, *, weight: float, memory: float) -> Line:
        """Add an observation with this weight; the older ones lose e^(−weight ÷ memory) of theirs."""
        kept = math.exp(-weight / memory)
        return Line(
            kept * self.weight + weight,
            kept * self.x + weight * x,
            kept * self.y + weight * y,
            kept * self.xx + weight * x * x,
            kept * self.xy + weight * x * y,
        )

    def fit(self) -> tuple[float, float] | None:
        """Return intercept and slope; None before any x above 0 was seen."""
        if self.xx <= 0:
            return None
        variation = max(0.0, self.weight - self.x * self.x / self.xx)
        intercept = max(0.0, (self.y - self.x * self.xy / self.xx) / (variation + _CAUTION * self.weight))
        slope = (self.xy - intercept * self.x) / self.xx
        return (intercept, slope) if slope >= 0 else (self.y / self.weight, 0.0)
