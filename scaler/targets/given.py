"""Where the values of a trigger's configuration come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scaler.policy.presets import policy_name, with_policy


@dataclass(frozen=True, slots=True)
class Given:
    """A value and who gave it."""

    value: str
    origin: str
    """`trigger`, `policy NAME` (one of the operator's, with what it builds on) or `preset NAME`."""


def given(metadata: Mapping[str, str], policies: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Given]:
    """Return what metadata and the policy that they name say, by key. Raises SettingsError for an unknown policy."""
    name = policy_name(metadata)
    filled_up = f"{'policy' if name in (policies or {}) else 'preset'} {name}"
    return {
        key: Given(value, "trigger" if key in metadata else filled_up)
        for key, value in with_policy(metadata, policies).items()
    }
