"""What prometheus_client's parser makes of a page, as the measure for the scaler's own reader."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from scaler.exposition.text import Labels, PageReader

METRICS = Path(__file__).parents[2] / "data/metrics"
PAGES = sorted(path for path in METRICS.iterdir() if path.suffix in {".txt", ".prom"})

Series = tuple[str, tuple[tuple[str, str], ...]]


def by_the_library(page: bytes, names: Collection[str]) -> dict[Series, float]:
    """Series → value of all samples whose name is in `names`, where ":" and "_" are one; the last of a series counts.

    The parser gives up at the first bad line, and renames counters without `_total`: so it gets every line alone.
    """
    wanted = {canonical(name): name for name in names}
    return {
        (wanted[canonical(sample.name)], tuple(sorted(sample.labels.items()))): float(sample.value)
        for line in page.decode("utf-8", "replace").split("\n")
        for sample in _samples(line)
        if canonical(sample.name) in wanted
    }


def by_the_scaler(page: bytes, names: Collection[str]) -> dict[Series, float]:
    found = reader(names).read(page)
    return {(name, labels): value for name, cell in found.cells.items() for labels, value in cell.items()}


def reader(names: Collection[str]) -> PageReader[str, tuple[tuple[str, str], ...]]:
    def place(name: str, labels: Labels) -> tuple[str, tuple[tuple[str, str], ...]]:
        return name, tuple(sorted(labels.items()))

    return PageReader(names, place)


def sample_names(page: bytes) -> set[str]:
    """All names on a page, but one of each two that differ only in ":" and "_"."""
    names = {sample.name for line in page.decode().split("\n") for sample in _samples(line)}
    return set({canonical(name): name for name in sorted(names)}.values())


def canonical(name: str) -> str:
    return name.replace(":", "_")


def _samples(line: str) -> Iterator:
    try:
        families = list(text_string_to_metric_families(line))
    except (ValueError, IndexError):  # the parser's own words for a bad line
        return
    for family in families:
        yield from family.samples
