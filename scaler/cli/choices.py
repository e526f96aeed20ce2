"""Options of which only some values are right."""

from __future__ import annotations

from collections.abc import Callable, Collection

import typer

from scaler.policy.parsing import parse_duration
from scaler.quoting import quoted


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """Return a callback that refuses any other value, and names those that would be right."""

    def check(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{quoted(value)} is none of {', '.join(names)}")
        return value

    return check


def seconds(option: str, text: str) -> float:
    """Read an option that is a duration. Raises typer.BadParameter."""
    try:
        return parse_duration(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: {quoted(text)} is wrong; right is, for instance, 90s or 5m") from None
