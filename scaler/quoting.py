"""Words of others within our own messages: one printable line, and no more of it than a reader needs.

Errors, logs, events and labels are kept and sent around: none of them may grow with what somebody wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

LONGEST = 80
"""Characters of another's text that are shown."""


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return the first `longest` characters, the last of them `…` where there are more."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return the first characters of `text` as one printable line."""
    start = text[: 4 * longest]  # what is far behind cannot be seen, and need not be looked at
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return shortened(line + "…" * (len(start) < len(text)), longest)


def quoted(value: object) -> str:
    """Return text in quotes, shortened; another value as it would be written.

    Of a mapping or a list only that it is one: YAML's aliases make endless ones out of a few lines.
    """
    match value:
        case str():
            return repr(shortened(value))
        case Mapping():
            return "a mapping"
        case Sequence() | Set() if not isinstance(value, bytes):
            return "a list"
        case None:
            return "nothing"
        case _:
            return one_line(repr(value))
