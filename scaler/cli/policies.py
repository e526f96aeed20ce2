"""The operator's policies: a YAML file of names, each with metadata as a trigger would give them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scaler.cli.operator_file import read
from scaler.quoting import one_line, quoted
from scaler.targets import SettingsError, parse_trigger

Policies = Mapping[str, Mapping[str, str]]


def load(path: Path) -> Policies:
    """Read and check a file of policies. Raises SettingsError with every problem in it, OSError without the file.

    chat:
      policy: adaptive
      headroom: 10%
      downscaleDelay: 10m
    """
    found, problems = read(path, "policy", "policies")
    policies: dict[str, dict[str, str]] = {}
    for name, values in found.items():
        shown = one_line(str(name))
        if not isinstance(values, dict):
            problems.append(f"{path}: {shown}: a mapping of keys to values is expected, found {quoted(values)}")
            continue
        policies[str(name)] = {}
        for key, value in values.items():
            if isinstance(value, str):
                policies[str(name)][str(key)] = value
            else:
                problems.append(
                    f"{path}: {shown}: {one_line(str(key))}: text or a number is expected, found {quoted(value)}"
                )
    for name in policies:
        try:
            parse_trigger({"policy": name}, policies)
        except SettingsError as error:
            problems.extend(f"{path}: {one_line(name)}: {problem}" for problem in error.problems)
    if problems:
        raise SettingsError(problems)
    return policies
