"""Rules about the way to zero replicas and back. None of them matters where the minimum is 1 or more."""

from __future__ import annotations

from collections.abc import Iterator

from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifests
from scaler.cli.linting.rule import warning
from scaler.cli.linting.scaled_object import DEFAULT_COOLDOWN_S, DEFAULT_POLLING_S, ScaledObject


@warning
def scale_to_zero(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """With no replica there is no queue that could be read: only a gateway that holds requests and reports them
    brings the first replica back. Without one, requests fail until somebody acts.
    """
    if so.floor_key:
        said = so.get("spec", so.floor_key) is not None
        yield Flaw(
            so.place("spec", so.floor_key),
            f"{so.floor_key} {'is 0' if said else 'is left out, and KEDA takes 0'}",
            "minReplicaCount: 1; or keep 0 with such a gateway, and say --ignore scale-to-zero",
        )


@warning
def initial_cooldown(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """A new ScaledObject that was never active goes to zero at KEDA's first poll, while its first pod still loads
    the model.
    """
    initial = so.number("spec", "initialCooldownPeriod")
    if so.floor_key and initial < so.given.start_up_s:
        yield Flaw(
            so.place("spec", "initialCooldownPeriod"),
            f"initialCooldownPeriod is {initial:g} s, less than a start-up of {so.given.start_up_s:g} s",
            f"initialCooldownPeriod: {so.given.start_up_s:g} or more",
        )


@warning
def cooldown(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """A cool-down shorter than a start-up throws away what the next request has to wait for again."""
    seconds = so.number("spec", "cooldownPeriod", default=DEFAULT_COOLDOWN_S)
    if so.floor_key and seconds < so.given.start_up_s:
        yield Flaw(
            so.place("spec", "cooldownPeriod"),
            f"cooldownPeriod is {seconds:g} s, less than a start-up of {so.given.start_up_s:g} s",
            f"cooldownPeriod: {so.given.start_up_s:g} or more",
        )


@warning
def slow_activation(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """From zero, a trigger of type external is only looked at once in each pollingInterval; external-push is told
    at once.
    """
    polling = so.number("spec", "pollingInterval", default=DEFAULT_POLLING_S)
    for trigger in so.triggers:
        if so.floor_key and trigger.kind == "external":
            yield Flaw(
                so.place(*trigger.path("type")),
                f"the way up from 0 waits for a poll, every {polling:g} s",
                "type: external-push",
            )
