"""docs/benchmarks.md and its pages: prose by people, and tables by this program between markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.policies.code import ROOT
from benchmarks.policies.tables import Table

PAGE = ROOT / "docs" / "benchmarks.md"
DETAILS = ROOT / "docs" / "benchmarks"
"""One page for each scene, with all its numbers."""
PARTS = ("aims", "fronts", "traces", "ablation")
"""The parts of the page that are written."""


def begin(part: str) -> str:
    """Return the line before a part."""
    return f"<!-- begin {part}: written by make backtest -->"


def end(part: str) -> str:
    """Return the line after a part."""
    return f"<!-- end {part} -->"


def write(parts: Mapping[str, str], page: Path = PAGE) -> None:
    """Put new text between the markers of these parts. Raises ValueError where a marker is missing."""
    text = page.read_text(encoding="utf-8")
    for part, new in parts.items():
        before, begun, rest = text.partition(begin(part))
        _, ended, after = rest.partition(end(part))
        if not (begun and ended):
            raise ValueError(f"{page.name} has no {begin(part)!r} with {end(part)!r} after it")
        text = f"{before}{begun}\n\n{new}\n\n{ended}{after}"
    page.write_text(text, encoding="utf-8")


def write_details(scene: str, what: str, tables: Sequence[Table]) -> None:
    """Write a scene's own page."""
    DETAILS.mkdir(exist_ok=True)
    head = f"# {scene}\n\n{what}. `make backtest` wrote this page; [what its columns mean](../benchmarks.md).\n"
    body = "\n".join(f"\n## {table.title}\n\n{table.markdown()}\n" for table in tables)
    (DETAILS / f"{scene}.md").write_text(head + body, encoding="utf-8")


def titled(tables: Sequence[Table]) -> str:
    """Return tables one after the other, each under its title."""
    return "\n\n".join(f"### {table.title}\n\n{table.markdown()}" for table in tables)
