"""Rules about the lowest and highest count, and the one that KEDA falls back to."""

from __future__ import annotations

from collections.abc import Iterator

from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifests
from scaler.cli.linting.rule import error, warning
from scaler.cli.linting.scaled_object import DEFAULT_MAX, ScaledObject
from scaler.quoting import quoted


@error
def min_above_max(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """KEDA refuses a ScaledObject whose minimum is above its maximum."""
    if so.minimum > so.maximum:
        yield Flaw(
            so.place("spec", "minReplicaCount"),
            f"minReplicaCount {so.minimum} is above maxReplicaCount {so.maximum}",
            f"minReplicaCount: {so.maximum} or less",
        )


@warning
def max_left_out(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The maximum is what a fault or a flood can cost you at most; KEDA's default suits no GPU."""
    if so.get("spec", "maxReplicaCount") is None:
        yield Flaw(
            so.place("spec"),
            f"no maxReplicaCount: KEDA allows {DEFAULT_MAX}",
            "maxReplicaCount: what you would pay for",
        )


@error
def idle_count(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """KEDA refuses an idleReplicaCount that is not below the minimum, and keeps only 0 apart from the HPA, which
    would bring any other back to the minimum.
    """
    idle = so.get("spec", "idleReplicaCount")
    if isinstance(idle, int) and (idle >= so.minimum or idle > 0):
        yield Flaw(
            so.place("spec", "idleReplicaCount"),
            f"idleReplicaCount {idle} with minReplicaCount {so.minimum}",
            f"no idleReplicaCount: {so.minimum} stay when idle" if so.minimum else "no idleReplicaCount",
        )


@warning
def schedule_above_max(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The maximum wins over a floor by schedule: the event would find fewer replicas than planned."""
    for trigger in so.triggers:
        for window in trigger.settings.min_replicas_schedule if trigger.settings else ():
            if window.floor > so.maximum:
                yield Flaw(
                    so.place(*trigger.path("metadata", "minReplicasSchedule")),
                    f"the floor of {quoted(window.text)} is above maxReplicaCount {so.maximum}",
                    f"maxReplicaCount: {window.floor} or more",
                )


@error
def fallback_to_zero(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """When the scaler cannot answer, KEDA takes a fallback of 0 for quiet and removes every replica after the
    cool-down, under load or not.
    """
    if so.get("spec", "fallback") is not None and so.number("spec", "fallback", "replicas") == 0:
        yield Flaw(
            so.place("spec", "fallback", "replicas"),
            "fallback.replicas is 0",
            "at least 1, with behavior: currentReplicasIfHigher; or no fallback: then the count stays as it is",
        )


@warning
def fallback_takes_away(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """An outage of the scaler says nothing about the load: a fallback below the present count takes replicas away
    while requests run.
    """
    if so.get("spec", "fallback") is None:
        return
    behavior = so.get("spec", "fallback", "behavior") or "static"
    if behavior in ("static", "currentReplicasIfLower"):
        yield Flaw(
            so.place("spec", "fallback", "behavior"),
            f"fallback.behavior is {behavior}",
            "behavior: currentReplicasIfHigher",
        )
