"""The slope of a series, less what chance alone would show."""

from __future__ import annotations

import math
from collections.abc import Sequence

POINTS = 32
"""How many points a trend is read from; denser ones are thinned."""
LEAST_POINTS = 5


def append(
    points: tuple[tuple[float, float], ...], time: float, value: float, window_s: float
) -> tuple[tuple[float, float], ...]:
    """Add a point, thin to `POINTS` over the window, and forget what is older than it."""
    if points and time - points[-1][0] < window_s / POINTS:
        return points
    return (*(p for p in points if p[0] >= time - window_s), (time, value))


def rising_slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope per second by least squares, less twice its standard error; 0 when that is not above 0.

    A steady noisy series so has no slope, and a falling one is left to the downscale delay.
    """
    n = len(points)
    if n < LEAST_POINTS:
        return 0.0
    mean_t = math.fsum(t for t, _ in points) / n
    mean_y = math.fsum(y for _, y in points) / n
    s_tt = s_ty = s_yy = 0.0
    for t, y in points:
        dt, dy = t - mean_t, y - mean_y
        s_tt += dt * dt
        s_ty += dt * dy
        s_yy += dy * dy
    if s_tt <= 0:
        return 0.0
    slope = s_ty / s_tt
    error = math.sqrt(max(0.0, s_yy - slope * s_ty) / (n - 2) / s_tt)
    return max(0.0, slope - 2 * error)
