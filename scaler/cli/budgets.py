"""The operator's budgets: a YAML file of names, each with its GPUs and the targets that share them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scaler.cli.operator_file import read
from scaler.quoting import one_line, quoted
from scaler.targets import Budget, SettingsError

_KEYS = {"gpus", "priorities"}
_MOST = 10_000_000


def load(path: Path) -> tuple[Budget, ...]:
    """Read and check a file of budgets. Raises SettingsError with every problem in it, OSError without the file.

    pool-a:
      gpus: 16
      priorities:        # the longest pattern that fits NAMESPACE/NAME counts
        chat/llama: 10
        chat/*: 5
        batch/*: 0
    """
    found, problems = read(path, "budget", "budgets")
    for name, values in found.items():
        if not (str(name).strip() and str(name).isprintable()):
            problems.append(f"{path}: {quoted(name)} is no name of a budget; right is, for instance, 'pool-a'")
        problems += [f"{path}: {one_line(str(name))}: {problem}" for problem in _problems(values)]
    if problems:
        raise SettingsError(problems)
    return tuple(
        Budget(str(name), int(values["gpus"]), {str(key): int(value) for key, value in values["priorities"].items()})
        for name, values in found.items()
    )


def _problems(values: object) -> Iterator[str]:
    if not isinstance(values, dict):
        yield f"a mapping with gpus and priorities is expected, found {quoted(values)}"
        return
    for key in values.keys() - _KEYS:
        yield f"{one_line(str(key))}: unknown key; known are gpus and priorities"
    if not 0 <= _whole(gpus := values.get("gpus"), -1) <= _MOST:
        yield f"gpus: {quoted(gpus)} is wrong (not a whole number from 0 to {_MOST:,}); right is, for instance, '16'"
    priorities = values.get("priorities")
    if not isinstance(priorities, dict) or not priorities:
        found = "an empty mapping" if priorities == {} else quoted(priorities)
        yield f"priorities: {found} is wrong (no targets); right is, for instance, {{chat/*: 10}}"
        return
    for pattern, value in priorities.items():
        if not all(str(pattern).partition("/")) or str(pattern).count("/") != 1:
            yield f"priorities: {quoted(pattern)} is wrong (no NAMESPACE/NAME); right is, for instance, 'chat/*'"
        if abs(_whole(value, _MOST + 1)) > _MOST:
            shown = one_line(str(pattern))
            yield f"priorities: {shown}: {quoted(value)} is wrong (no whole number); right is, for instance, '10'"


def _whole(value: object, otherwise: int) -> int:
    text = str(value)
    return int(text) if len(text) <= 9 and text.removeprefix("-").isdecimal() else otherwise
