"""Named policies. A preset is a file of metadata values with the reasons beside them, and a line here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from scaler.policy.parsing import SettingsError, parse_duration
from scaler.policy.presets import adaptive, dual_threshold, pulse, queue_rules, ray_serve
from scaler.policy.rules import MIN_SAMPLES
from scaler.quoting import quoted, shortened

PRESETS: Mapping[str, Mapping[str, str]] = {
    "adaptive": adaptive.VALUES,
    "ray-serve": ray_serve.VALUES,
    "pulse": pulse.VALUES,
    "queue-rules": queue_rules.VALUES,
    "dual-threshold": dual_threshold.VALUES,
}
DEFAULT = "adaptive"
LONGEST_CHAIN = 10
"""As many policies may build on each other, one on the next."""
_MOST_NAMED = 20


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
    asked, seen = name, list[str]()
    while True:
        source = named.get(name, PRESETS.get(name))
        if source is None:
            raise _wrong(name, "no such policy", _hint(name, {*named, *PRESETS}))
        if name in seen and name not in PRESETS:
            circle = " → ".join(map(shortened, [*seen, name]))
            raise _wrong(name, f"builds on itself: {circle}", "right is an end to it")
        if name in seen:  # an operator's policy that refines the preset of its own name
            source = PRESETS[name]
        elif len(seen) == LONGEST_CHAIN:
            fault = f"more than {LONGEST_CHAIN} policies, each of which builds on the next"
            raise _wrong(asked, fault, "right is a shorter chain")
        seen.append(name)
        values = {**source, **values}
        if "policy" not in source or source is PRESETS.get(name):
            break
        name = source["policy"]
    values.pop("policy", None)
    if "metricsInterval" in metadata and "lookBackPeriod" not in metadata and _looks_back_too_little(values):
        del values["lookBackPeriod"]  # it goes with the policy's own interval; with the trigger's goes the default
    return values


def _looks_back_too_little(values: Mapping[str, str]) -> bool:
    try:
        look_back, interval = (parse_duration(values[key]) for key in ("lookBackPeriod", "metricsInterval"))
    except (KeyError, ValueError):  # the default, or what is no duration and will be told so
        return False
    return look_back < MIN_SAMPLES * interval


def _wrong(name: str, fault: str, right: str) -> SettingsError:
    return SettingsError([f"policy: {quoted(name)} is wrong ({fault}); {right}"])


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if len(name) < 100 and (near := difflib.get_close_matches(name, names, n=1, cutoff=0.75)):
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(map(shortened, names[:_MOST_NAMED]))}{', …' * (len(names) > _MOST_NAMED)}"
