"""From what a person writes to a contender: `adaptive`, `ray-serve,targetOngoingRequests=20`, `static-6`, a rival."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import partial

from scaler.backtest.ours import Ours
from scaler.backtest.rivals import RIVALS, fixed
from scaler.backtest.run import Entrant
from scaler.policy import PolicySettings, SettingsError
from scaler.policy.presets import PRESETS
from scaler.targets.settings import parse_trigger

Policies = Mapping[str, Mapping[str, str]]

RIVAL = "rival:"
"""Before the name of a rival that is also the name of a preset."""
_STATIC = re.compile(r"static-(\d+)")


def settings(text: str, policies: Policies | None = None) -> PolicySettings:
    """Read `NAME` or `NAME,key=value,…`: a preset or one of the operator's policies, with metadata beside it.

    Raises SettingsError.
    """
    name, *pairs = (part.strip() for part in text.split(","))
    metadata = {"policy": name}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError([f"{text}: {pair!r} is wrong; right is, for instance, headroom=10%"])
        metadata[key.strip()] = value.strip()
    return parse_trigger(metadata, policies)


def entrant(text: str, policies: Policies | None = None) -> Entrant:
    """Return the contender of this name. Raises SettingsError, which names what would be right."""
    name = text.split(",", maxsplit=1)[0].strip()
    if name in PRESETS or name in (policies or {}):
        return Entrant(text, partial(Ours, settings=settings(text, policies), name=text))
    if (static := _STATIC.fullmatch(text)) is not None:
        return Entrant(text, fixed(int(static[1])))
    rival = text.removeprefix(RIVAL)
    if rival in RIVALS:
        return Entrant(text, RIVALS[rival])
    known = [*PRESETS, *(policies or {}), *rivals(), "static-N"]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    raise SettingsError([f"policy {text!r}: no such policy; {hint}"])


def rivals() -> list[str]:
    """Return the names under which the rivals are known here."""
    return [f"{RIVAL}{name}" if name in PRESETS else name for name in RIVALS]
