"""From what a person writes to a contender: `adaptive`, `ray-serve,targetOngoingRequests=20`, `static-6`, a rival.

A rival takes its own settings in the same way: `knative,target=12`.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from scaler.backtest.contender import Maker
from scaler.backtest.ours import Ours
from scaler.backtest.rivals import RIVALS, fixed
from scaler.backtest.run import Entrant
from scaler.policy import PolicySettings, SettingsError
from scaler.policy.presets import PRESETS
from scaler.quoting import quoted
from scaler.targets.settings import parse_trigger

Policies = Mapping[str, Mapping[str, str]]

RIVAL = "rival:"
"""Before the name of a rival that is also the name of a preset."""
_STATIC = re.compile(r"static-(\d+)")


def settings(text: str, policies: Policies | None = None) -> PolicySettings:
    """Read `NAME` or `NAME,key=value,…`: a preset or one of the operator's policies, with metadata beside it.

    Raises SettingsError.
    """
    name, pairs = _split(text, "headroom=10%")
    return parse_trigger({"policy": name, **pairs}, policies)


def entrant(text: str, policies: Policies | None = None) -> Entrant:
    """Return the contender of this name. Raises SettingsError, which names what would be right."""
    name = text.split(",", maxsplit=1)[0].strip()
    if name in PRESETS or name in (policies or {}):
        return Entrant(
            text, partial(Ours, settings=settings(text, policies), name=text, given=_objectives_of(text, policies))
        )
    if (static := _STATIC.fullmatch(text)) is not None:
        return Entrant(text, fixed(int(static[1])))
    if name.removeprefix(RIVAL) in RIVALS:
        return Entrant(text, _rival(text))
    known = [*PRESETS, *(policies or {}), *rivals(), "static-N"]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    raise SettingsError([f"policy {quoted(text)}: no such policy; {hint}"])


def _objectives_of(text: str, policies: Policies | None) -> frozenset[str]:
    """Return the objectives that a person set, who is taken at the word; those of a preset are the plant's to say."""
    name, pairs = _split(text, "headroom=10%")
    keys = {*pairs, *(policies or {}).get(name, {})}
    return frozenset(field for key, field in (("ttftSlo", "ttft_slo_s"), ("itlSlo", "itl_slo_s")) if key in keys)


def rivals() -> list[str]:
    """Return the names under which the rivals are known here."""
    return [f"{RIVAL}{name}" if name in PRESETS else name for name in RIVALS]


def rival_settings(name: str) -> Any:
    """Return a rival's settings, a frozen dataclass with its authors' values; None where it has none."""
    maker = RIVALS[name]
    if isinstance(maker, partial):
        return maker.keywords["settings"]
    parameter = inspect.signature(maker).parameters.get("settings")
    return None if parameter is None else parameter.default


def _rival(text: str) -> Maker:
    """Return a rival with the settings beside its name."""
    full, pairs = _split(text, "target=12")
    name = full.removeprefix(RIVAL)
    maker, base = RIVALS[name], rival_settings(name)
    if not pairs:
        return maker
    known = {} if base is None else asdict(base)
    if strangers := [key for key in pairs if key not in known]:
        right = f"right is {', '.join(known)}" if known else f"{name} has none"
        raise SettingsError([f"{text}: no setting {', '.join(strangers)}; {right}"])
    values = {key: _value(text, key, value, known[key]) for key, value in pairs.items()}
    rule: Any = maker.func if isinstance(maker, partial) else maker
    return partial(rule, settings=replace(base, **values), name=text)


def _value(text: str, key: str, value: str, default: object) -> object:
    if isinstance(default, bool):
        if value not in {"true", "false"}:
            raise SettingsError([f"{text}: {key} is {quoted(value)}; right is true or false"])
        return value == "true"
    try:
        return float(value)
    except ValueError:
        raise SettingsError([f"{text}: {key} is {quoted(value)}; right is a number"]) from None


def _split(text: str, example: str) -> tuple[str, dict[str, str]]:
    """Return the name and the pairs behind it. Raises SettingsError."""
    name, *rest = (part.strip() for part in text.split(","))
    pairs = {}
    for pair in rest:
        key, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError([f"{text}: {quoted(pair)} is wrong; right is, for instance, {example}"])
        pairs[key.strip()] = value.strip()
    return name, pairs
