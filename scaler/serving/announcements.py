"""Events on ScaledObjects, for `kubectl describe`: changes of mind, warnings, and triggers that are invalid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet

from scaler.cluster.events import Severity
from scaler.cluster.model import ScaledObject, Workload
from scaler.targets import FROM_ENV, Outcomes, Record, Target, Targets, TargetState


class Events(Protocol):
    """Who writes the events down, and sees to it that they are no flood."""

    def say(self, about: ScaledObject, reason: str, note: str, severity: Severity = "Normal") -> None:
        """Have `note` shown on a ScaledObject."""
        ...


class Announcer:
    """Says each thing when it begins, and only where `speaks` allows it: of several replicas, one is to be heard."""

    def __init__(self, targets: Targets, events: Events, speaks: Callable[[], bool]) -> None:
        self._targets = targets
        self._events = events
        self._speaks = speaks
        self._scaled_objects: dict[tuple[str, str], ScaledObject] = {}
        self._warnings: WeakKeyDictionary[Target, frozenset[str]] = WeakKeyDictionary()
        self._stale: WeakSet[Target] = WeakSet()
        self._blocked: WeakSet[Target] = WeakSet()

    def show(self, scaled_objects: Iterable[ScaledObject]) -> None:
        """Take in the ScaledObjects that name this scaler, all of them, and say which triggers are invalid."""
        self._scaled_objects = {(shown.namespace, shown.name): shown for shown in scaled_objects}
        for (namespace, name), shown in self._scaled_objects.items():
            for trigger in shown.triggers:
                if any(key.endswith(FROM_ENV) for key in trigger.metadata):
                    continue  # only KEDA knows the values
                if error := self._targets.refusal(namespace, name, trigger.metadata):
                    self._say(shown, "InvalidTrigger", f"trigger {trigger.index}: {error}", "Warning")

    def note(self, target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:  # noqa: ARG002
        """Say what a tick brought; an observer of the targets' world."""
        shown = self._scaled_objects.get((target.namespace, target.name))
        if shown is None:
            return
        desired, before = record.decision.desired, record.before
        if desired != before:
            self._say(shown, "DesiredReplicas", f"{before} → {desired}: {record.decision.reason}", "Normal")
        if target.state is not TargetState.STALE:
            self._stale.discard(target)
        elif target not in self._stale:
            self._stale.add(target)
            self._say(shown, "Stale", target.reason, "Warning")
        blocked = record.decision.blocked
        if blocked and target not in self._blocked:
            self._blocked.add(target)
            self._say(shown, "CapacityBlocked", blocked, "Warning")
        elif not blocked and target in self._blocked:
            self._blocked.discard(target)
            self._say(shown, "CapacityFound", "no pod waits too long for a node any more", "Normal")
        warnings = frozenset(target.warnings)
        for warning in sorted(warnings - self._warnings.get(target, frozenset())):
            self._say(shown, "ScalerWarning", warning, "Warning")
        self._warnings[target] = warnings

    def _say(self, about: ScaledObject, reason: str, note: str, severity: Severity) -> None:
        if self._speaks():
            self._events.say(about, reason, note, severity)
