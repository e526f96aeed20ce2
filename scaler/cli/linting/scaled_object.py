"""A ScaledObject as rules look at it: KEDA's defaults filled in, our triggers read into settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaler.cli.linting.finding import Place
from scaler.cli.linting.manifests import Manifest, Reference, Step, Written
from scaler.policy.parsing import SettingsError
from scaler.policy.presets import PRESETS, policy_name
from scaler.targets.settings import FROM_ENV, KEDA_KEYS, TriggerSettings, parse_trigger

BEHAVIOR = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")

DEFAULT_MAX = 100
DEFAULT_COOLDOWN_S = 300
DEFAULT_POLLING_S = 30
"""What KEDA takes where the ScaledObject says nothing."""

ADDRESS_PART = "vllm-scaler"
"""A service of this name is taken for ours when nobody says what ours is called."""

Policies = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Given:
    """What the user knows beyond the files."""

    policies: Policies | None = None
    """The operator's policies by name; None when they are not at hand."""
    scaler_address: str | None = None
    """Triggers that name this address are ours, and no others. None: it is guessed from name and keys."""
    start_up_s: float = 300.0
    """Seconds from a replica asked for to a replica that serves."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger that names this scaler."""

    index: int
    kind: str
    """`external` or `external-push`"""
    metadata: Mapping[str, Written | None]
    """As written: values that are no text are a flaw, and still here; None for a mapping or a list."""
    settings: TriggerSettings | None
    """None when the metadata are wrong."""
    problems: tuple[str, ...]
    """What is wrong with the metadata, a line each; it begins with the key."""
    unknown_policy: str
    """The policy's name when it may be one of the operator's, who was not asked; else empty."""

    def text(self, key: str) -> str:
        """Return the value of a key of the metadata as it was written, empty where there is none."""
        value = self.metadata.get(key)
        return value.text if value else ""

    def path(self, *rest: Step) -> tuple[Step, ...]:
        """Return where the trigger, or something in it, stands in the ScaledObject."""
        return ("spec", "triggers", self.index, *rest)


class ScaledObject:
    """A manifest of this kind with at least one trigger for this scaler."""

    def __init__(self, manifest: Manifest, given: Given) -> None:
        self.manifest = manifest
        self.given = given
        self.get, self.place = manifest.get, manifest.place
        self.all_triggers = manifest.items("spec", "triggers")
        self.triggers = tuple(
            _trigger(index, manifest, given)
            for index, trigger in enumerate(self.all_triggers)
            if is_ours(trigger, given.scaler_address)
        )

    @property
    def name(self) -> str:
        """NAMESPACE/NAME"""
        return f"{self.manifest.namespace}/{self.manifest.name}"

    def number(self, *path: Step, default: float = 0) -> float:
        """Return the number at `path`, the default where there is none."""
        value = self.get(*path)
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return value if number else default

    @property
    def minimum(self) -> int:
        """`minReplicaCount`"""
        return int(self.number("spec", "minReplicaCount"))

    @property
    def maximum(self) -> int:
        """`maxReplicaCount`"""
        return int(self.number("spec", "maxReplicaCount", default=DEFAULT_MAX))

    @property
    def floor_key(self) -> str:
        """The key that lets the count go to zero, empty when none does. KEDA's default minimum is zero."""
        if self.get("spec", "idleReplicaCount") == 0:
            return "idleReplicaCount"
        return "minReplicaCount" if self.minimum == 0 else ""

    @property
    def target(self) -> Reference:
        """The scale target, with KEDA's defaults."""
        return self.manifest.scaled or ("", "", "")

    def behavior(self, direction: str, key: str) -> Any:
        """Return a key of the HPA's `scaleUp` or `scaleDown` behaviour, None where it is left out."""
        return self.get(*BEHAVIOR, direction, key)

    def behavior_place(self, direction: str, key: str) -> Place:
        """Return where that key stands, or where it would."""
        return self.place(*BEHAVIOR, direction, key)


def is_ours(trigger: Any, scaler_address: str | None) -> bool:
    """Tell whether a trigger, as written, names this scaler."""
    if not isinstance(trigger, dict) or trigger.get("type") not in ("external", "external-push"):
        return False
    metadata = trigger.get("metadata")
    if not isinstance(metadata, dict):
        return False
    address = metadata.get("scalerAddress")
    address = address if isinstance(address, str) else ""
    if scaler_address is not None:
        return address == scaler_address
    return ADDRESS_PART in address or not {"policy", *TriggerSettings.keys()}.isdisjoint(metadata)


def _trigger(index: int, manifest: Manifest, given: Given) -> Trigger:
    path = ("spec", "triggers", index)
    scalars = manifest.scalars(*path, "metadata")
    metadata = dict.fromkeys(map(str, manifest.get(*path, "metadata"))) | scalars
    values = {key: value.text for key, value in scalars.items() if not _from_env(key)}
    unknown_policy = ""
    if given.policies is None and policy_name(values) not in PRESETS:
        unknown_policy = values.pop("policy")
    settings, problems = _parsed(values, given.policies)
    return Trigger(index, manifest.text(*path, "type"), metadata, settings, problems, unknown_policy)


def _parsed(values: dict[str, str], policies: Policies | None) -> tuple[TriggerSettings | None, tuple[str, ...]]:
    try:
        return parse_trigger(values, policies), ()
    except SettingsError as error:
        return None, error.problems


def _from_env(key: str) -> bool:
    """Tell whether the value is only known in the cluster: KEDA takes it from a variable of the pod."""
    return key.endswith(FROM_ENV) and key.removesuffix(FROM_ENV) in {"policy", *TriggerSettings.keys(), *KEDA_KEYS}
