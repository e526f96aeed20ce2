"""The lines of a trace file, and what is said about one that cannot be right."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

LONGEST_S = 366 * 86_400.0
"""A trace that spans more time than this mixes two clocks."""
MOST_TOKENS = 10_000_000
"""A request of more is a fault in the file."""


class TraceError(ValueError):
    """A trace cannot be read: the message names file and line, and what would be right."""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Give the lines that are not blank, each with its number; of a file that ends in `.gz`, what is packed in it.

    Raises OSError, and TraceError for what is no text.
    """
    with _open(path) as file:
        number = 0
        try:
            for number, line in enumerate(file, start=1):
                if text := line.strip():
                    yield number, text
        except UnicodeDecodeError:
            raise TraceError(f"{path}, after line {number}: text in UTF-8 is expected, found other bytes") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TraceError(f"{path}, after line {number}: this is no whole gzip file: {error}") from None


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def whole_number(source: str, number: int, name: str, value: object, *, least: int, most: int = MOST_TOKENS) -> int:
    """Return a number, of tokens if nothing else is said. Raises TraceError."""
    try:
        count = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
    except ValueError:
        count = None
    if count is None or not least <= count <= most:
        raise TraceError(
            f"{source}, line {number}: {name} is {value!r:.60}; a whole number from {least} to {most} is expected"
        )
    return count
