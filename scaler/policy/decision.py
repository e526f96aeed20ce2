"""What the policy answers: the count, and every step that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One rule's line: what it did and why."""

    rule: str
    """The rule's name; its code is the function of that name in `scaler.policy.steps`, or `scaler.policy.warm`."""
    replicas: float
    """The replica count after the rule, still a real number until it is rounded."""
    text: str


@dataclass(frozen=True, slots=True)
class Emission:
    """The metric value for KEDA (AverageValue, target 1) and where the HPA arrives with it."""

    value: float
    arrives_at: int
    """The count at which the HPA's arithmetic arrives at its next sync."""
    note: str = ""
    """Why `arrives_at` is not the desired count; empty when it is."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One tick's answer, with what it takes to explain it."""

    time: float
    desired: int
    """The replica count wanted."""
    reason: str
    """The rule that set `desired`, with its text."""
    active: bool
    """Something waits, runs or loads, or cannot be seen: not a moment to go to zero."""
    at_once: bool
    """A burst, to be delivered directly: the count should not wait for the HPA's next sync."""
    demand: Mapping[str, float]
    """Replicas that each signal asked for."""
    steps: tuple[Step, ...]
    emission: Emission
    falls_in_s: float | None = None
    """How soon the count may fall if the load stays as it is; 0 as it falls, None while no fall is wanted."""
    blocked: str = ""
    """Why more replicas would find no node, empty where they would: the target is capacity-blocked."""
    claim: int = 0
    """The count that would be wanted without a budget."""
    warm: int = 0
    """For how many replicas beyond `desired` there should be room on nodes."""
