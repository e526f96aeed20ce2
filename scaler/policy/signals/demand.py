"""The answer of a signal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Demand:
    """Replicas that the load needs, a real number."""

    replicas: float
    text: str
    """How it was worked out, one line."""
    backlog: float = 0.0
    """The part of `replicas` that is there only to work off what waits."""
