"""Who takes part: our own policies, the rivals with their authors' settings and with tuned ones, fixed counts.

A contestant is known by the text that `vllm-scaler backtest --policy` takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.policies.code import fingerprint
from benchmarks.policies.scenes import Scene
from scaler.backtest import entrants
from scaler.backtest.contender import Maker
from scaler.backtest.ours import Ours
from scaler.backtest.rivals import RIVALS
from scaler.policy.presets import PRESETS

ADAPTIVE = "adaptive"
OURS = tuple(PRESETS)
ORACLE = "oracle"
AUTHORS = tuple(f"{entrants.RIVAL}{name}" for name in RIVALS if name not in {ORACLE, "static-peak"})
"""The rivals with the settings that their authors recommend."""
TUNED = Path(__file__).with_name("tuned.json")
"""Scene → start-up in seconds → rival → settings, as `make backtest ARGS=--tune` found them."""
_STATIC = re.compile(r"static-(\d+)")

_PLAYED = ("scaler.backtest.plant", "scaler.backtest.scores", "scaler.backtest.traces", "benchmarks.policies.playing")
_ASIDE = (
    "benchmarks.policies.scenes",  # a run's configuration has what matters of it
    "benchmarks.policies.contestants",
    "scaler.backtest.rivals",  # the list of all
    "scaler.backtest.traces.recorded",
    "scaler.cluster*",
    "scaler.sources*",
)
_READING = ("scaler.policy.parsing", "scaler.policy.presets*", "scaler.policy.settings", "scaler.quoting")
"""How settings are read: a run's configuration has those that were read."""


def tuned(scene: Scene, start_up_s: float) -> tuple[str, ...]:
    """Return the rivals with the settings that were found for this scene, at the start-up nearest to this one."""
    found: Mapping[str, Mapping[str, Mapping[str, float]]] = _tuned().get(scene.name, {})
    if not found:
        return ()
    nearest = min(found, key=lambda each: (abs(float(each) - start_up_s), float(each)))
    return tuple(with_settings(name, values) for name, values in found[nearest].items())


def with_settings(rival: str, values: Mapping[str, float]) -> str:
    """Return the text for a rival with these settings."""
    return ",".join([f"{entrants.RIVAL}{rival}", *(f"{key}={value:g}" for key, value in values.items())])


def _tuned() -> Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]:
    if not TUNED.exists():
        return {}
    data: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]] = json.loads(TUNED.read_text())
    return data


def statics(scene: Scene) -> tuple[str, ...]:
    """Return the fixed counts of a scene: its static frontier."""
    return tuple(f"static-{count}" for count in scene.fixed)


def everybody(scene: Scene, start_up_s: float) -> Sequence[str]:
    """Return all who are compared in a scene, in the order of its table."""
    return (*OURS, *AUTHORS, *tuned(scene, start_up_s), *statics(scene), ORACLE)


def fixed_count(text: str) -> int | None:
    """Return the count of one that never moves; None for all others."""
    match = _STATIC.fullmatch(text)
    return None if match is None else int(match[1])


def label(text: str) -> str:
    """Return the name for tables: rivals by their own, our presets beside `adaptive` as such."""
    name, comma, _ = text.partition(",")
    rival = name.removeprefix(entrants.RIVAL)
    if name != rival:
        return f"{rival} (tuned)" if comma else rival
    return f"preset {text}" if name in PRESETS and name != ADAPTIVE else text


def maker(text: str) -> Maker:
    """Return what makes the contender of this text. Raises SettingsError."""
    return entrants.entrant(text).maker


def depends_on(text: str) -> str:
    """Return all that decides what this contestant does, plant included: a digest of the code, and the settings."""
    made = maker(text)
    rule, known = (made.func, made.keywords) if isinstance(made, partial) else (made, {})
    if rule is Ours:
        code = fingerprint((*_PLAYED, Ours.__module__), without=(*_ASIDE, *_READING))
    else:
        arithmetic = ("scaler.policy.counting", "scaler.policy.hpa")
        code = fingerprint((*_PLAYED, rule.__module__, *arithmetic), without=(*_ASIDE, "scaler.policy*"))
    rival = text.partition(",")[0].removeprefix(entrants.RIVAL)
    settings = known["settings"] if "settings" in known else entrants.rival_settings(rival)
    return f"{code} {rule.__qualname__} {settings!r}"
