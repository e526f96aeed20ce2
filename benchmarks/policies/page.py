"""docs/benchmarks.md and its pages: prose by people, and tables by this program between markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.policies.code import ROOT
from benchmarks.policies.scenes import Scene
from benchmarks.policies.tables import Report, Table

DOCS = ROOT / "docs"
PARTS = ("aims", "fronts", "traces", "ablation")
"""The parts of the page that are written."""


def begin(part: str) -> str:
    """Return the line before a part."""
    return f"<!-- begin {part}: written by make backtest -->"


def end(part: str) -> str:
    """Return the line after a part."""
    return f"<!-- end {part} -->"


def publish(report: Report, docs: Path = DOCS) -> None:
    """Write the tables of the whole grid into the page, and a page of its own for each scene."""
    write(
        {
            "aims": _titled([report.aims, report.misses]),
            "fronts": report.fronts.markdown(),
            "traces": _titled(report.overviews),
        },
        docs,
    )
    for scene, tables in report.details.items():
        _write_details(scene, tables, docs / "benchmarks")


def write(parts: Mapping[str, str], docs: Path = DOCS) -> None:
    """Put new text between the markers of these parts. Raises ValueError where a marker is missing."""
    page = docs / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    for part, new in parts.items():
        before, begun, rest = text.partition(begin(part))
        _, ended, after = rest.partition(end(part))
        if not (begun and ended):
            raise ValueError(f"{page.name} has no {begin(part)!r} with {end(part)!r} after it")
        text = f"{before}{begun}\n\n{new}\n\n{ended}{after}"
    page.write_text(text, encoding="utf-8")


def _write_details(scene: Scene, tables: Sequence[Table], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    head = (
        f"# {scene.name}\n\n{scene.what}. `make backtest` wrote this page; [what its columns mean](../benchmarks.md). "
        "● marks the front.\n"
    )
    body = "\n".join(f"\n## {table.title}\n\n{table.markdown()}\n" for table in tables)
    (folder / f"{scene.name}.md").write_text(head + body, encoding="utf-8")


def _titled(tables: Sequence[Table]) -> str:
    return "\n\n".join(f"### {table.title}\n\n{table.markdown()}" for table in tables)
