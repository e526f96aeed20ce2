"""Reading what the command line names, up to a size beyond which it cannot be what it is taken for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import typer

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


def manifest_texts(file: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and text of a file, of every YAML file in a folder, or of stdin for `-`. Raises typer.BadParameter."""
    path = Path(file)
    if file == "-":
        yield "<stdin>", _read_or_refuse("<stdin>", lambda: capped(sys.stdin.buffer))
    elif path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
        if not inside:
            raise typer.BadParameter(f"{file}: no .yaml or .yml file is in this folder")
        for inner in inside:
            yield str(inner), _read_or_refuse(str(inner), partial(content, inner))
    else:
        yield file, _read_or_refuse(file, partial(content, path))


def _read_or_refuse(name: str, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except TooLong as error:
        raise typer.BadParameter(f"{name}: {error}: those are no manifests") from None
    except OSError as error:
        raise typer.BadParameter(f"{name}: {error.strerror or error}") from None
