"""What is remembered of a tick. Explanations, pages and metrics show these values; nothing is worked out twice."""

from __future__ import annotations

from dataclasses import dataclass

from scaler.cluster.model import Phase
from scaler.policy.decision import Decision
from scaler.policy.observation import Observation


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
