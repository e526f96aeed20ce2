"""The status of a RayWorkerGroup: counts, selector and conditions, and whether that is news."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scaler.cluster.client import Json
from scaler.cluster.conditions import conditions_of
from scaler.cluster.ray.model import WorkerGroup

READY = "Ready"
LIMITED = "Limited"


@dataclass(frozen=True, slots=True)
class Condition:
    """One of the status's conditions."""

    kind: str
    holds: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The pods that the group has."""

    cluster: str
    """The RayCluster that serves."""
    selector: str
    """Empty where none would be right."""
    replicas: int
    ready: int


@dataclass(frozen=True, slots=True)
class Status:
    """What is to stand in the status. Without counts there is no selector: scaler and HPA then keep the count."""

    counts: Counts | None
    conditions: tuple[Condition, ...] = field(default=())

    def changed(self, group: WorkerGroup, now: str) -> Json | None:
        """Return the status to write, as a merge patch; None where it stands there already. `now` is RFC 3339."""
        stands = conditions_of(group.status)
        counts = self.counts
        values: Json = {
            "observedGeneration": group.generation,
            "rayCluster": counts.cluster if counts else None,
            "selector": (counts.selector or None) if counts else None,
            "replicas": counts.replicas if counts else 0,
            "readyReplicas": counts.ready if counts else 0,
            "conditions": [_condition(c, stands.get(c.kind), group.generation, now) for c in self.conditions],
        }
        if all(group.status.get(key) == value for key, value in values.items()):
            return None
        return values


def reason(group: WorkerGroup, kind: str) -> str:
    """Return a condition's reason as it stands there, empty where there is none."""
    return str(conditions_of(group.status).get(kind, {}).get("reason", ""))


def _condition(condition: Condition, stands: Json | None, generation: int, now: str) -> dict[str, Any]:
    status = str(condition.holds)
    since = stands["lastTransitionTime"] if stands is not None and stands["status"] == status else now
    return {
        "type": condition.kind,
        "status": status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since,
        "observedGeneration": generation,
    }
