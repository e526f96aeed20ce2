"""The operator's policies: a YAML file of names, each with metadata as a trigger would give them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from scaler.targets import SettingsError, parse_trigger

Policies = Mapping[str, Mapping[str, str]]


def load(path: Path) -> Policies:
    """Read and check a file of policies. Raises SettingsError with every problem in it, OSError without the file.

    chat:
      policy: adaptive
      headroom: 10%
      downscaleDelay: 10m
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, or a date such as 2026-99-99
        raise SettingsError([f"{path}: no YAML: {' '.join(str(error).split())}"]) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError([f"{path}: a mapping of policy names is expected, found {_found(content)}"])
    problems: list[str] = []
    policies: dict[str, dict[str, str]] = {}
    for name, values in content.items():
        if not isinstance(values, dict):
            problems.append(f"{path}: {name}: a mapping of keys to values is expected, found {_found(values)}")
            continue
        policies[str(name)] = {}
        for key, value in values.items():
            if isinstance(value, str | int | float):
                policies[str(name)][str(key)] = str(value).lower() if isinstance(value, bool) else str(value)
            else:
                problems.append(f"{path}: {name}: {key}: text or a number is expected, found {_found(value)}")
    for name in policies:
        try:
            parse_trigger({"policy": name}, policies)
        except SettingsError as error:
            problems.extend(f"{path}: {name}: {problem}" for problem in error.problems)
    if problems:
        raise SettingsError(problems)
    return policies


def _found(value: object) -> str:
    """What stands there instead; without its content where that may be without end, as aliases make it."""
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "nothing"
        case _:
            return repr(value)
