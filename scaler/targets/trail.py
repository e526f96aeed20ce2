"""The numbers of past ticks, for charts: each value a column of single-precision floats, NaN where it is unknown."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scaler.targets.record import Record

_DIGITS = 6
"""What single precision is good for."""


@dataclass(frozen=True, slots=True)
class Points:
    """Columns of equal length, oldest first."""

    times: list[float] = field(default_factory=list)
    """Unix seconds."""
    columns: dict[str, list[float]] = field(default_factory=dict)
    """By name, see `numbers`; NaN is unknown."""

    def __len__(self) -> int:
        return len(self.times)


def numbers(record: Record) -> Iterator[tuple[str, float]]:
    """Give the known numbers of a tick by name: counts of replicas, `demand.SIGNAL`, the load, `LATENCY.QUANTILE`."""
    decision, load, replicas = record.decision, record.observation.load, record.observation.replicas
    yield "desired", decision.desired
    yield "emission", record.emission
    yield "requested", replicas.requested
    yield "ready", replicas.ready
    yield "starting", replicas.starting
    yield "terminating", replicas.terminating
    yield "unschedulable", replicas.unschedulable
    yield "unknown_pods", len(load.unknown)
    for signal, demand in decision.demand.items():
        yield f"demand.{signal}", demand
    for name, value in (
        ("waiting", load.waiting),
        ("running", load.running),
        ("kv_cache_usage", load.kv_cache_usage),
        ("arrival_rate", load.arrival_rate),
    ):
        if value is not None:
            yield name, value
    for name, latency in load.latency.items():
        yield f"{name}.p50", latency.p50
        yield f"{name}.p95", latency.p95
        yield f"{name}.p99", latency.p99


class Trail:
    """The last `length` ticks, in rings that hold nothing but their numbers."""

    def __init__(self, length: int) -> None:
        self._times = array("d", [math.nan]) * length
        self._columns: dict[str, array[float]] = {}
        self._next = 0
        self._full = False

    def add(self, record: Record) -> None:
        """Take in a tick, in place of the oldest."""
        i = self._next
        for column in self._columns.values():
            column[i] = math.nan
        for name, value in numbers(record):
            if name not in self._columns:
                self._columns[name] = array("f", [math.nan]) * len(self._times)
            self._columns[name][i] = value
        self._times[i] = record.time
        self._next = (i + 1) % len(self._times)
        self._full = self._full or self._next == 0

    @property
    def oldest(self) -> float:
        """The time of the oldest tick (Unix seconds); -inf while there is none."""
        if not self._full and self._next == 0:
            return -math.inf
        return self._times[self._next if self._full else 0]

    def after(self, time: float) -> Points:
        """Return the ticks after `time` (Unix seconds)."""
        order = [*range(self._next, len(self._times))] if self._full else []
        rows = [i for i in (*order, *range(self._next)) if self._times[i] > time]
        return Points(
            [self._times[i] for i in rows],
            {name: [_short(column[i]) for i in rows] for name, column in self._columns.items()},
        )


def points_of(records: Iterable[Record]) -> Points:
    """Return the numbers of whole records."""
    found = Points()
    for record in records:
        for name, value in numbers(record):
            column = found.columns.setdefault(name, [])
            column.extend([math.nan] * (len(found) - len(column)))
            column.append(_short(value))
        found.times.append(record.time)
    for column in found.columns.values():
        column.extend([math.nan] * (len(found) - len(column)))
    return found


def joined(older: Points, newer: Points) -> Points:
    """Put one after the other; a column that only one of them has is unknown in the other."""
    names = {**older.columns, **newer.columns}
    return Points(
        older.times + newer.times,
        {
            name: older.columns.get(name, [math.nan] * len(older)) + newer.columns.get(name, [math.nan] * len(newer))
            for name in names
        },
    )


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
