"""Reading what the command line names, up to a size beyond which it cannot be what it is taken for."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

MIB = 2**20
MOST_BYTES = 64 * MIB


class TooLong(ValueError):
    """There is more than MOST_BYTES of it, or no end at all."""

    def __init__(self) -> None:
        super().__init__(f"more than {MOST_BYTES // MIB} MB")


def capped(file: BinaryIO) -> bytes:
    """Read an open file to its end. Raises TooLong, OSError."""
    text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise TooLong
    return text


def content(path: Path) -> bytes:
    """Read the file at `path`. Raises TooLong, OSError."""
    with path.open("rb") as file:
        return capped(file)
