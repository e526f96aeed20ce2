"""The configuration in force: every key with its value, where the value comes from, and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scaler.targets.settings import FROM_ENV, TriggerSettings
from scaler.targets.target import Target

_LIMITS_KEYS = ("minReplicas", "maxReplicas")
"""They are the ScaledObject's, unless the trigger names its pods by address."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key as it is in force."""

    key: str
    value: str
    """As it was given, or the default in the same notation; empty when it is left out and has no value."""
    origin: str
    """`trigger`, `policy NAME`, `preset NAME`, `default`, `ScaledObject` or `HPA`."""
    meaning: str


def configuration(target: Target) -> tuple[Setting, ...]:
    """Tell how a target is configured: all keys of the trigger, then what the cluster adds."""
    return (*_settings(target), *_cluster(target))


def _settings(target: Target) -> Iterator[Setting]:
    settings = target.settings
    for field_name, field in TriggerSettings.model_fields.items():
        key = str(field.alias)
        if key in _LIMITS_KEYS and settings.endpoints is None:
            continue
        given = target.given.get(key + FROM_ENV) or target.given.get(key)
        value = given.value if given else _text(getattr(settings, field_name), is_duration=field_name.endswith("_s"))
        yield Setting(key, value, given.origin if given else "default", field.description or "")


def _cluster(target: Target) -> Iterator[Setting]:
    if target.latest is None:
        return
    limits = target.latest.observation.limits
    if target.settings.endpoints is None:
        yield Setting("minReplicaCount", str(limits.minimum), "ScaledObject", "The least replicas.")
        yield Setting("maxReplicaCount", str(limits.maximum), "ScaledObject", "The most replicas.")
    yield Setting("scaleUp.tolerance", f"{limits.tolerance_up:g}", "HPA", "Dead band of the HPA on the way up.")
    yield Setting("scaleDown.tolerance", f"{limits.tolerance_down:g}", "HPA", "Dead band of the HPA on the way down.")


def _text(value: object, *, is_duration: bool) -> str:
    match value:
        case None | ():
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}{'s' if is_duration else ''}"
        case _:
            return str(value)
