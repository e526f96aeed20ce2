"""What is remembered of a tick. Explanations, pages and metrics show these values; nothing is worked out twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from scaler.cluster.model import Phase
from scaler.policy.decision import Decision
from scaler.policy.observation import Observation

_RECENT = 20
_CHANGES = 30


@dataclass(frozen=True, slots=True)
class PodRecord:
    """One pod at one tick: where it is in its life, and what its page said."""

    name: str
    phase: Phase
    since: float
    """When the phase began, Unix seconds."""
    waiting: float | None = None
    running: float | None = None
    kv_cache_usage: float | None = None
    unknown: str = ""
    """Why the page could not be read, or why the pod cannot run."""


@dataclass(frozen=True, slots=True)
class Record:
    """One tick: inputs, decision, and the change of mind that led here."""

    time: float
    """Unix seconds."""
    observation: Observation
    decision: Decision
    pods: tuple[PodRecord, ...]
    warnings: tuple[str, ...]
    emission: float
    """What KEDA is told: the decision's emission, or in shadow mode the present count."""
    took_s: float
    """How long the tick took, reading included."""
    before: int
    """The desired count before this decision."""
    last_change: str
    """The rule that made the last change of the desired count; empty when there was none yet."""
    last_change_time: float
    """Unix seconds; 0 when there was none yet."""


class History:
    """The last ticks, and beyond them the last ticks at which the count changed."""

    def __init__(self) -> None:
        self._recent: deque[Record] = deque(maxlen=_RECENT)
        self._changes: deque[Record] = deque(maxlen=_CHANGES)

    def add(self, record: Record) -> None:
        """Remember a record."""
        self._recent.append(record)
        if record.decision.desired != record.before:
            self._changes.append(record)

    @property
    def latest(self) -> Record | None:
        """The newest record, None before the first."""
        return self._recent[-1] if self._recent else None

    def __iter__(self) -> Iterator[Record]:
        """Give all that is remembered, oldest first, each once."""
        oldest_recent = self._recent[0].time if self._recent else 0.0
        yield from (record for record in self._changes if record.time < oldest_recent)
        yield from self._recent
