"""From the series of one engine to one value, and from the engines of a page to the page's total."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scaler.exposition.sample import Histogram, Reading


class Series(NamedTuple):
    """What tells the series of one gauge or counter of one engine apart."""

    labels: tuple[tuple[str, str], ...]
    """All labels but those of `copy`."""
    copy: tuple[tuple[str, str], ...] = ()
    """The labels that name one of several processes that all report the same value."""
    is_part: bool = False
    """Another series, in which one of the labels is empty, is the total of this one and others."""


Key = Series | float | str
"""A sample within its cell: a series, a bucket's bound in seconds, or SUM."""
SUM = "sum"


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a value counts, and the most that can be true."""

    meaning: str
    limit: float


REQUESTS = Quantity("number of requests", 1e9)
SHARE = Quantity("share between 0 and 1", 1.5)
COUNT = Quantity("count", 1e18)


class Unknown(Exception):
    """A value that cannot be had; the message says why."""


def gauge(name: str, cell: Mapping[Series, float], quantity: Quantity) -> float:
    """Return the one value of all series in `cell`.

    Of copies the largest counts (one that was never set says 0), and where there is a total its parts do not. What
    then remains is added up, or for a share averaged. Raises Unknown for what no engine can mean.
    """
    for value in cell.values():
        if not 0 <= value <= quantity.limit:  # NaN too
            raise Unknown(f"{name} is {value:g}, which is no {quantity.meaning}")
    values = cell.values() if len(cell) == 1 else _distinct(cell)
    return sum(values) if quantity is not SHARE else min(1.0, sum(values) / len(values))


def _distinct(cell: Mapping[Series, float]) -> Collection[float]:
    cell = {series: value for series, value in cell.items() if not series.is_part} or cell
    largest: dict[tuple[tuple[str, str], ...], float] = {}
    for series, value in cell.items():
        largest[series.labels] = max(value, largest.get(series.labels, 0.0))
    return largest.values()


def histogram(name: str, cell: dict[Any, float]) -> Histogram:
    """Return the histogram whose buckets and sum are in `cell`. Raises Unknown for one that cannot be true."""
    if SUM not in cell:
        raise Unknown(f"{name} has no sum")
    total = cell.pop(SUM)
    bounds = tuple(cell)
    if not all(map(operator.lt, bounds, bounds[1:])):
        cell = dict(sorted(cell.items()))
        bounds = tuple(cell)
    if not bounds or bounds[-1] != math.inf:
        raise Unknown(f"{name} has no bucket +Inf")
    counts = tuple(cell.values())
    rising = counts[0] >= 0 and all(map(operator.le, counts, counts[1:])) and counts[-1] <= COUNT.limit
    if not (rising and math.isfinite(total)):
        raise Unknown(f"{name} is no histogram: its counts or its sum make no sense")
    return Histogram(bounds, counts, total)


def added(name: str, histograms: Sequence[Histogram]) -> Histogram:
    """Return one histogram of all observations. Raises Unknown where the bounds differ."""
    first, *others = histograms
    if not others:
        return first
    if any(other.bounds != first.bounds for other in others):
        raise Unknown(f"{name} has different buckets in different series")
    counts = tuple(map(sum, zip(*[each.counts for each in histograms], strict=True)))
    return Histogram(first.bounds, counts, sum([each.sum for each in histograms]))


def total(engines: Mapping[str, Reading]) -> Reading:
    """Return what several engines say together: sums, for the KV cache the mean; asleep if all are.

    What one engine does not know, all together do not know; what one does not offer, it adds nothing to. Under the
    empty label stands what a page says without naming an engine.
    """
    unknown = {
        name: f"engine {label}: {why}" if label else why
        for label, engine in engines.items()
        for name, why in engine.unknown.items()
    }
    asleep = [engine.asleep for label, engine in engines.items() if label]

    def combined(field: str, combine: Callable[[list[float]], float]) -> float | None:
        values = [value for engine in engines.values() if (value := getattr(engine, field)) is not None]
        return combine(values) if values and field not in unknown else None

    histograms: dict[str, Histogram] = {}
    for name in _names(engine.histograms for engine in engines.values()):
        if name not in unknown:
            try:
                histograms[name] = added(name, [e.histograms[name] for e in engines.values() if name in e.histograms])
            except Unknown as why:
                unknown[name] = str(why)
    return Reading(
        waiting=combined("waiting", math.fsum),
        running=combined("running", math.fsum),
        kv_cache_usage=combined("kv_cache_usage", lambda values: math.fsum(values) / len(values)),
        waiting_deferred=combined("waiting_deferred", math.fsum),
        asleep=bool(asleep) and all(asleep),
        counters={
            name: math.fsum(engine.counters.get(name, 0.0) for engine in engines.values())
            for name in _names(engine.counters for engine in engines.values())
            if name not in unknown
        },
        histograms=histograms,
        unknown=unknown,
    )


def _names(maps: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for each in maps for name in each))
