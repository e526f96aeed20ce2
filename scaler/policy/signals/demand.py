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
    per_arrival_rate: float | None = None
    """Replicas for each request per second, where the rest of `replicas` is the arrival rate times this."""
    request_s: float | None = None
    """How long a request runs, where that is known."""
