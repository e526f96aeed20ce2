"""The cluster in our words: pods, the scale target and the ScaledObject, as last seen by the watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Phase(StrEnum):
    """Where a pod is in its life."""

    STARTING = "starting"
    READY = "ready"
    TERMINATING = "terminating"
    UNSCHEDULABLE = "unschedulable"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the scale target. Times are Unix seconds."""

    name: str
    uid: str
    phase: Phase
    since: float
    """When the phase began."""
    created: float
    scheduled_at: float | None = None
    """When a node took it, None until then."""
    running_at: float | None = None
    """When all its containers first ran, None until then."""
    ready_at: float | None = None
    """When the pod first became ready, None until then."""
    ip: str = ""
    host_ip: str = ""
    node: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """The labels that its node must have."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Container ports by name; unnamed ones by their number as text."""
    reason: str = ""
    """Why it is unschedulable or does not start, in the cluster's own words."""
    controller: str = ""
    """Kind of the object that made it and takes it away, say `ReplicaSet`."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Its annotations of `pod_marks.MARKS`."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger of a ScaledObject that names this scaler."""

    index: int
    type: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScaledObject:
    """The parts of a KEDA ScaledObject that matter here."""

    namespace: str
    name: str
    uid: str
    generation: int
    api_version: str
    kind: str
    target: str
    """apiVersion, kind and name of `scaleTargetRef`, with KEDA's defaults filled in."""
    minimum: int
    maximum: int
    cooldown_s: float
    polling_s: float
    paused: bool
    triggers: tuple[Trigger, ...]
    """Only those that name this scaler."""
    tolerance_up: float | None = None
    tolerance_down: float | None = None
    """The tolerances that it asks the HPA to have, None where it asks for none."""
    idle: int | None = None
    """`idleReplicaCount`: what KEDA sets, below the minimum, when all is quiet; None where it has none."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A scale target as last seen: counts, pods and limits."""

    requested: int
    """`spec.replicas`"""
    current: int
    """`status.replicas`"""
    pods: tuple[Pod, ...]
    minimum: int
    maximum: int
    tolerance_up: float = 0.1
    tolerance_down: float = 0.1
    """The tolerances that the HPA really carries (0.1 where it names none)."""
    paused: bool = False
    warnings: tuple[str, ...] = ()
    """Things that the operator should know, one line each."""
    seen_at: float = 0.0
    """Unix time until which this view is known to be right: while the watches are alive, now."""
    idle: int | None = None
    """`idleReplicaCount`, None where there is none."""

    @property
    def may_be_idled(self) -> bool:
        """Whether KEDA itself, past the HPA, takes replicas away when it believes that all is quiet."""
        return self.minimum == 0 or self.idle is not None


class DiscoveryError(Exception):
    """The workload cannot be told: the message says what is missing and what to do."""


class Discovery(Protocol):
    """Where a target's pods and limits come from: Kubernetes, fixed endpoints, or a simulation."""

    def workload(self, namespace: str, name: str) -> Workload:
        """Return the workload behind ScaledObject `namespace`/`name`, from memory. Raises DiscoveryError."""
        ...
