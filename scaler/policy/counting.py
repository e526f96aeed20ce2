"""Counts of replicas: how they are rounded, and how numbers read in a text."""

from __future__ import annotations

import math

_EPSILON = 1e-9
"""Rounding up must not make a replica out of the last bit of a floating-point number."""
MOST = 1e6
"""More replicas than this is no load but a fault in what was read or configured."""


def ceil(replicas: float) -> int:
    """Round up to whole replicas."""
    return math.ceil(min(replicas, MOST) - _EPSILON)


def number(value: float) -> str:
    """Write a number for people: three digits that tell, and never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 0.001 else "0"


def pods(count: int) -> str:
    """Write a count of pods."""
    return "1 pod" if count == 1 else f"{count} pods"
