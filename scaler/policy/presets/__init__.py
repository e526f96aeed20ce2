"""Named policies. A preset is a file of metadata values with the reasons beside them, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from scaler.policy.parsing import SettingsError
from scaler.policy.presets import adaptive, dual_threshold, pulse, queue_rules, ray_serve

PRESETS: Mapping[str, Mapping[str, str]] = {
    "adaptive": adaptive.VALUES,
    "ray-serve": ray_serve.VALUES,
    "pulse": pulse.VALUES,
    "queue-rules": queue_rules.VALUES,
    "dual-threshold": dual_threshold.VALUES,
}
DEFAULT = "adaptive"


def policy_name(metadata: Mapping[str, str]) -> str:
    """Return the name of the policy that the metadata ask for."""
    return metadata.get("policy") or DEFAULT


def with_policy(metadata: Mapping[str, str], named: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, str]:
    """Fill metadata up with the values of the policy that they name; their own values win.

    `named` are the operator's policies; one of them may build on another or on a preset by its own `policy` key,
    and hides a preset of the same name. Raises SettingsError for a name that nobody defined, or a circle.
    """
    named = named or {}
    values, name = dict(metadata), policy_name(metadata)
    seen: list[str] = []
    while True:
        source = named.get(name, PRESETS.get(name))
        if source is None or (name in seen and name not in PRESETS):
            known = ", ".join(sorted({*named, *PRESETS}))
            fault = "no such policy" if source is None else f"builds on itself: {' → '.join([*seen, name])}"
            raise SettingsError([f"policy: {name!r} is wrong ({fault}); known are {known}"])
        if name in seen:  # an operator's policy that refines the preset of its own name
            source = PRESETS[name]
        seen.append(name)
        values = {**source, **values}
        if "policy" not in source or source is PRESETS.get(name):
            break
        name = source["policy"]
    values.pop("policy", None)
    return values
