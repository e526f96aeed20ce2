"""A dialect: which series of an engine's page mean what. Each engine declares its own in `dialects/`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from scaler.exposition import combining
from scaler.exposition.combining import COUNT, REQUESTS, SHARE, Key, Quantity, Series, Unknown
from scaler.exposition.sample import Histogram, PageError, Reading, Sample
from scaler.exposition.text import BadLines, Labels, Page, PageReader, starts_with


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's name, and the labels that its series must carry."""

    name: str
    where: tuple[tuple[str, str], ...] = ()


def metrics(*names: str, **where: str) -> tuple[Metric, ...]:
    """Return the metrics that say one thing under several names, the preferred one first."""
    return tuple(Metric(name, tuple(where.items())) for name in names)


ONLY = "0"
"""The name of an engine that has none."""
BUCKET = "_bucket"
_GAUGES = {
    "waiting": REQUESTS,
    "waiting_outside": REQUESTS,
    "running": REQUESTS,
    "kv_cache_usage": SHARE,
    "waiting_deferred": REQUESTS,
    "awake": REQUESTS,
}
_SHOWN_AS = {"waiting_outside": "waiting", "awake": "asleep"}
"""The field of a reading that a part of ours goes into, where that has another name."""
_EXPECTED = ("waiting", "running", "kv_cache_usage")
"""Unknown where they are missing. Anything else that is missing is something that the engine does not offer."""


class Slot(NamedTuple):
    """The cell of a sample: for which field, from which of its metrics, of which engine.

    `rest` is what else tells histograms apart; other cells have that in their keys.
    """

    field: str
    choice: int
    engine: str
    rest: tuple[tuple[str, str], ...] = ()


Cells = dict[str, list[dict[Key, float]]]
"""Field → the samples that one engine has for it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Dialect:
    """One engine's way of telling its load. Of several metrics for a field, the first that is on the page counts."""

    name: str
    prefixes: tuple[str, ...]
    """How the names of this engine's series begin: by that a page is recognised."""
    waiting: tuple[Metric, ...]
    running: tuple[Metric, ...] = ()
    kv_cache_usage: tuple[Metric, ...] = ()
    waiting_deferred: tuple[Metric, ...] = ()
    waiting_outside: tuple[Metric, ...] = ()
    """Requests that wait in front of the engine, and that `waiting` does not count: added to it."""
    awake: tuple[Metric, ...] = ()
    """A gauge that is 0 while the engine sleeps."""
    counters: Mapping[str, tuple[Metric, ...]] = field(default_factory=dict)
    histograms: Mapping[str, tuple[Metric, ...]] = field(default_factory=dict)
    engine_labels: tuple[str, ...] = ("engine",)
    """The labels that tell several engines on one page apart."""
    copies: frozenset[str] = frozenset()
    """Labels of processes that all report the same value: the largest counts."""
    total_label: str | None = None
    """A label whose empty value marks the total of the series where it is not empty."""
    idle_is_zero: bool = True
    """Whether a gauge with a TYPE line and no sample is one that was not set yet."""
    holds_s: float = 0.0
    """How long a caller may go on with the last value of a gauge that went missing, in seconds."""
    shared: frozenset[str] = frozenset()
    """Fields that only some of a target's pages tell; each adds its part (`scaler.exposition.sharing`)."""
    hint: str = ""
    """What to check where an engine of this kind shows no load."""

    def speaks(self, page: bytes) -> bool:
        """Tell whether any line of the page is about a series of this engine."""
        return self._recognises(page)

    @cached_property
    def sample_names(self) -> tuple[str, ...]:
        """The names of all samples that are read, as the engine spells them."""
        return tuple(self._targets)

    def read(self, page: bytes) -> Sample:
        """Read a page of this engine. Raises PageError for one that shows nothing of its load."""
        found = self._reader.read(page)
        if not (found.cells or found.bad or any(found.declares(name) for name in self.sample_names)):
            raise PageError(f"no series of {self.name} is on the page{f': {self.hint}' if self.hint else ''}")
        total, engines = self._readings(found)
        return sample(self.name, total, engines)

    def engine_of(self, labels: Labels) -> str:
        """Return the engine that a series belongs to, empty if it names none."""
        return "/".join([labels[name] for name in self.engine_labels if name in labels])

    def _readings(self, found: Page[Slot, Key]) -> tuple[Reading, dict[str, Reading]]:
        """Return what the whole page says, and what each engine on it says."""
        chosen: dict[str, int] = {}
        for field_, choice, _, _ in found.cells:
            if choice <= chosen.get(field_, choice):
                chosen[field_] = choice
        cells: defaultdict[str, Cells] = defaultdict(dict)
        for (field_, choice, engine, _), cell in found.cells.items():
            if choice == chosen[field_]:
                cells[engine].setdefault(field_, []).append(cell)
        nameless = cells.pop("", {})
        if len(cells) <= 1:  # then a series that names no engine is the only engine's too
            name, own = next(iter(cells.items()), (ONLY, {}))
            reading = self._reading(found, chosen, nameless | own, self._parts)
            return reading, {name: reading}
        its_own = [part for part in self._parts if part.field not in nameless]
        readings = {name: self._reading(found, chosen, own, its_own) for name, own in cells.items()}
        shared = [part for part in self._parts if part.field in nameless]
        return combining.total(readings | {"": self._reading(found, chosen, nameless, shared)}), readings

    def _reading(
        self, found: Page[Slot, Key], chosen: Mapping[str, int], own: Cells, parts: Iterable[_Part]
    ) -> Reading:
        """Return what one engine, whose samples are `own`, says about `parts`."""
        values: dict[str, Any] = {}
        unknown: dict[str, str] = {}
        for part in parts:
            try:
                if found.bad:
                    part.refuse(found.bad, chosen)
                if cells := own.get(part.field):
                    values[part.field] = part.combine(chosen[part.field], cells)
                else:
                    self._without_samples(part, found, values)
            except Unknown as why:
                unknown[_SHOWN_AS.get(part.field, part.field)] = str(why)
        waiting = values.get("waiting")
        if waiting is not None:
            waiting = None if "waiting" in unknown else waiting + values.get("waiting_outside", 0.0)
        return Reading(
            waiting=waiting,
            running=values.get("running"),
            kv_cache_usage=values.get("kv_cache_usage"),
            waiting_deferred=values.get("waiting_deferred"),
            asleep=values.get("awake") == 0,
            counters={name: values[name] for name in self.counters if name in values},
            histograms={name: values[name] for name in self.histograms if name in values},
            unknown=unknown,
        )

    def _without_samples(self, part: _Part, found: Page[Slot, Key], values: dict[str, Any]) -> None:
        """Take a gauge or counter that is only declared for one that was not set yet. Raises Unknown."""
        if part.quantity and self.idle_is_zero and any(found.declares(metric.name) for metric in part.metrics):
            values[part.field] = 0.0
        elif part.field in _EXPECTED:
            raise Unknown(f"no {' or '.join(metric.name for metric in part.metrics)} on the page")

    def _place(self, name: str, labels: Labels) -> tuple[Slot, Key] | None:
        for part, choice in self._targets[name]:
            if all(labels.get(label) == value for label, value in part.metrics[choice].where):
                engine = self.engine_of(labels)
                if part.quantity:
                    return Slot(part.field, choice, engine), self._series(labels)
                key = float(labels.pop("le", "")) if name.endswith(BUCKET) else combining.SUM
                return Slot(part.field, choice, engine, tuple(sorted(labels.items()))), key
        return None

    def _series(self, labels: Labels) -> Series:
        own = tuple(sorted(item for item in labels.items() if item[0] not in self.copies))
        copy = tuple(sorted(item for item in labels.items() if item[0] in self.copies))
        return Series(own, copy, bool(self.total_label and labels.get(self.total_label)))

    @cached_property
    def _parts(self) -> tuple[_Part, ...]:
        gauges = ((name, getattr(self, name), quantity) for name, quantity in _GAUGES.items())
        counters = ((name, metrics, COUNT) for name, metrics in self.counters.items())
        histograms = ((name, metrics, None) for name, metrics in self.histograms.items())
        return tuple(_Part(*part) for part in (*gauges, *counters, *histograms) if part[1])

    @cached_property
    def _targets(self) -> dict[str, list[tuple[_Part, int]]]:
        """Sample name → the parts that may want it, and as which of their metrics."""
        targets: dict[str, list[tuple[_Part, int]]] = {}
        for part in self._parts:
            for choice in range(len(part.metrics)):
                for name in part.sample_names(choice):
                    targets.setdefault(name, []).append((part, choice))
        return targets

    @cached_property
    def _reader(self) -> PageReader[Slot, Key]:
        return PageReader(self._targets, self._place)

    @cached_property
    def _recognises(self) -> Callable[[bytes], bool]:
        return starts_with(self.prefixes)


def sample(engine: str, total: Reading, engines: Mapping[str, Reading]) -> Sample:
    """Return the sample of a page from its total and its engines."""
    return Sample(
        waiting=total.waiting,
        running=total.running,
        kv_cache_usage=total.kv_cache_usage,
        waiting_deferred=total.waiting_deferred,
        asleep=total.asleep,
        counters=total.counters,
        histograms=total.histograms,
        unknown=total.unknown,
        engine=engine,
        engines=engines,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a reading, and the metrics that may tell it; `quantity` is None for a histogram."""

    field: str
    metrics: tuple[Metric, ...]
    quantity: Quantity | None

    def sample_names(self, choice: int) -> tuple[str, ...]:
        name = self.metrics[choice].name
        return (name,) if self.quantity else (name + BUCKET, name + "_sum")

    def combine(self, choice: int, cells: list[dict[Any, float]]) -> float | Histogram:
        """Return the value of all these samples. Raises Unknown."""
        name = self.metrics[choice].name
        if self.quantity is None:
            return combining.added(name, [combining.histogram(name, cell) for cell in cells])
        cell = cells[0] if len(cells) == 1 else {key: value for each in cells for key, value in each.items()}
        return combining.gauge(name, cell, self.quantity)

    def refuse(self, bad: Mapping[str, BadLines], chosen: Mapping[str, int]) -> None:
        """Raise Unknown if a line that may have held a part of the value could not be read."""
        for choice in range(chosen.get(self.field, len(self.metrics) - 1) + 1):
            for name in self.sample_names(choice):
                if lines := bad.get(name):
                    raise Unknown(
                        f"{lines.count} line{'s' * (lines.count > 1)} of {name} cannot be read: {lines.first}"
                    )
