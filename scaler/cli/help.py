"""How help looks: paragraphs flow to the width of the terminal, and flags show no value."""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperCommand, TyperGroup

AS_IT_IS = "\b"
"""A paragraph that begins with it keeps its lines: those are examples."""


class _Help:
    """The part that a command and the list of commands share."""

    def __init__(self, *arguments: Any, help: str | None = None, **options: Any) -> None:  # noqa: A002  # typer's name
        super().__init__(*arguments, help=help and flowing(help), **options)  # type: ignore[call-arg]  # as below

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters that help tells of."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class beside this one
        for parameter in found:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return found


class Command(_Help, TyperCommand):
    """A command."""


class Group(_Help, TyperGroup):
    """The list of commands."""


def flowing(text: str) -> str:
    """Return a text with each paragraph in one line."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each if each.startswith(AS_IT_IS) else " ".join(each.split("\n")) for each in paragraphs)
