"""Which code a result depends on: every module that it can reach by imports, as one fingerprint."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("scaler", "inference", "benchmarks")


def fingerprint(modules: Iterable[str], *, without: Collection[str] = ()) -> str:
    """Return a digest of the modules and of all of ours that they import, directly or not.

    What one of the patterns in `without` fits does not count, nor does what only it imports; but the modules
    themselves always do.
    """
    digest = sha256()
    for name in sorted(_reached(tuple(modules), without)):
        digest.update(name.encode() + b"\0" + _path(name).read_bytes() + b"\0")
    return digest.hexdigest()


def _reached(modules: Collection[str], without: Collection[str]) -> set[str]:
    found: set[str] = set()
    left = list(modules)
    while left:
        name = left.pop()
        cut = any(fnmatchcase(name, pattern) for pattern in without)
        if name not in found and (name in modules or not cut):
            found.add(name)
            left += _imports(name)
    return found


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Return our modules that a module's text imports."""
    tree = ast.parse(_path(name).read_text(encoding="utf-8"))
    return tuple(each for each in _named(tree) if each.split(".")[0] in ROOMS and _path(each).exists())


def _named(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _path(name: str) -> Path:
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
