"""The Horizontal Pod Autoscaler with its behaviors, for one external metric of type AverageValue with target 1.

Source: `normalizeDesiredReplicasWithBehaviors` of Kubernetes' horizontal controller; the arithmetic of the metric is
`scaler.policy.hpa`, which the emission relies on too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from scaler.policy.hpa import recommend

SYNC_S = 15.0
"""Seconds between two looks of the HPA (`--horizontal-pod-autoscaler-sync-period`)."""


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """How much may change within a period."""

    type: Literal["Pods", "Percent"]
    value: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Behavior:
    """One direction's rules, named as in `autoscaling/v2`."""

    stabilization_s: float
    policies: tuple[ScalingPolicy, ...]
    tolerance: float = 0.1
    select_policy: Literal["Max", "Min", "Disabled"] = "Max"


UP = Behavior(0.0, (ScalingPolicy("Percent", 100, 15.0), ScalingPolicy("Pods", 4, 15.0)))
DOWN = Behavior(300.0, (ScalingPolicy("Percent", 100, 15.0),))
"""What Kubernetes fills in where a HorizontalPodAutoscaler names no behavior."""


@dataclass(slots=True)
class Hpa:
    """A HorizontalPodAutoscaler between `minimum` (at least 1) and `maximum` replicas."""

    minimum: int
    maximum: int
    up: Behavior = UP
    down: Behavior = DOWN
    _recommendations: list[tuple[float, int]] = field(default_factory=list)
    _events: list[tuple[float, int]] = field(default_factory=list)
    """(time, replicas added or removed)"""

    def sync(self, value: float, now: float, requested: int, current: int) -> int:
        """Return the new `spec.replicas` for a metric value at `now` (seconds).

        `requested` is `spec.replicas`, `current` is `status.replicas` of the scale target.
        """
        if requested == 0:
            return 0  # disabled: only KEDA leads away from zero
        if not self.minimum <= requested <= self.maximum:
            return self._moved(now, requested, max(self.minimum, min(self.maximum, requested)))
        wanted = recommend(value, current, self.up.tolerance, self.down.tolerance)
        wanted = self._stabilized(wanted, now, requested)
        if wanted > requested:
            wanted = min(wanted, max(requested, self._limit(self.up, 1, now, requested)))
        elif wanted < requested:
            wanted = max(wanted, min(requested, self._limit(self.down, -1, now, requested)))
        return self._moved(now, requested, max(self.minimum, min(self.maximum, wanted)))

    def _stabilized(self, wanted: int, now: float, requested: int) -> int:
        """The least recommendation of the up window, the highest of the down window, and the present between."""
        longest = max(self.up.stabilization_s, self.down.stabilization_s)
        if not self._recommendations:  # the first look takes the count as it is for a recommendation
            self._recommendations = [(now, requested)]
        self._recommendations = [r for r in self._recommendations if r[0] > now - longest]
        up, down = wanted, wanted
        for time, replicas in self._recommendations:
            if time > now - self.up.stabilization_s:
                up = min(up, replicas)
            if time > now - self.down.stabilization_s:
                down = max(down, replicas)
        self._recommendations.append((now, wanted))
        return min(max(requested, up), down)

    def _limit(self, behavior: Behavior, sign: int, now: float, requested: int) -> int:
        """How far the rate policies let the count go."""
        if behavior.select_policy == "Disabled":
            return requested
        proposals: Sequence[int] = [self._proposal(policy, sign, now, requested) for policy in behavior.policies]
        furthest = (behavior.select_policy == "Max") == (sign > 0)
        return max(proposals) if furthest else min(proposals)

    def _proposal(self, policy: ScalingPolicy, sign: int, now: float, requested: int) -> int:
        start = requested - sum(delta for time, delta in self._events if time > now - policy.period_s)
        if policy.type == "Pods":
            return start + sign * policy.value
        share = start * (1 + sign * policy.value / 100)
        return math.ceil(share) if sign > 0 else math.floor(share)

    def _moved(self, now: float, requested: int, wanted: int) -> int:
        if wanted != requested:
            longest = max(policy.period_s for behavior in (self.up, self.down) for policy in behavior.policies)
            self._events = [e for e in self._events if e[0] > now - longest]
            self._events.append((now, wanted - requested))
        return wanted
