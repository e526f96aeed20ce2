"""Rules about the triggers: how KEDA asks, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Iterator

from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifests
from scaler.cli.linting.rule import error, warning
from scaler.cli.linting.scaled_object import ScaledObject
from scaler.quoting import quoted


@warning
def one_trigger(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The HPA takes the highest of all triggers, so none can scale down alone, and KEDA gives the HPA no metric at
    all while one trigger's scaler cannot be reached: an outage of either stops both.
    """
    if len(so.all_triggers) > 1:
        other = next(i for i in range(len(so.all_triggers)) if i != so.triggers[0].index)
        yield Flaw(
            so.place("spec", "triggers", other),
            f"{len(so.all_triggers)} triggers",
            "one trigger; several signals and rules, and a floor by minReplicasSchedule, fit into its metadata",
        )


@error
def average_value(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The scaler hands over a count of replicas for the whole target. With Value the HPA multiplies it by the pods
    that are ready, which is wrong whenever some are starting; Utilization is refused by KEDA.
    """
    for trigger in so.triggers:
        metric_type = so.get(*trigger.path("metricType"))
        if metric_type not in (None, "", "AverageValue"):
            place = so.place(*trigger.path("metricType"))
            yield Flaw(place, f"metricType is {quoted(metric_type)}", "metricType: AverageValue")


@warning
def cached_metrics(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The HPA then gets what KEDA's poll saw up to a pollingInterval ago, errors included. This scaler answers from
    memory: there is nothing to spare it.
    """
    for trigger in so.triggers:
        if so.get(*trigger.path("useCachedMetrics")) is True:
            yield Flaw(so.place(*trigger.path("useCachedMetrics")), "useCachedMetrics is on", "useCachedMetrics: false")


@warning
def scaling_modifiers(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """A formula changes the count on its way to the HPA, so it no longer arrives at what was decided, and activity
    becomes `value > activationTarget` in place of the scaler's own word.
    """
    if so.get("spec", "advanced", "scalingModifiers", "formula"):
        yield Flaw(
            so.place("spec", "advanced", "scalingModifiers"),
            "scalingModifiers are in use",
            "no scalingModifiers: signals are combined, limited and smoothed by the trigger's metadata",
        )
