"""What a run cost and gave: replicas over time, and what became of the requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from inference.simulated import Fleet, Outcome, SloSummary, summarize

_LAST_S = 1800.0
"""How long the requests that are still in engines at the end may take to finish."""


@dataclass(slots=True)
class Tally:
    """Counts while a run goes on; `summary` and `average_replicas` at its end."""

    outcomes: list[Outcome] = field(default_factory=list)
    changes: int = 0
    """How often `spec.replicas` moved."""
    pod_seconds: float = 0.0
    time: float = 0.0
    """How long the run has lasted, in seconds."""

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count requests that ended."""
        self.outcomes.extend(outcomes)

    def pods(self, fleet: Fleet, time: float) -> None:
        """Count the pods that stood since the last call: each holds its GPU from creation until it is gone."""
        self.pod_seconds += len(fleet.pods) * (time - self.time)
        self.time = time

    def finish(self, fleet: Fleet) -> None:
        """Let the requests that are still in engines end; nothing scales any more, and it costs nothing."""
        end = fleet.now + _LAST_S
        while not fleet.idle and fleet.now < end:
            self.add(fleet.advance(fleet.now + 5.0))

    @property
    def average_replicas(self) -> float:
        """Pods that held a GPU, averaged over the run."""
        return self.pod_seconds / self.time if self.time else 0.0

    @property
    def gpu_hours(self) -> float:
        """Pod hours; one GPU a pod."""
        return self.pod_seconds / 3600

    def summary(self) -> SloSummary:
        """How well the objectives were kept: TTFT 3 s, 100 ms a token."""
        return summarize(self.outcomes)
