"""Going on for a while with gauges that an engine's page shows only now and then, as Ray's does."""

from __future__ import annotations

from dataclasses import fields, replace

from scaler.exposition import ENGINES, combining
from scaler.exposition.sample import Reading, Sample

_GAUGES = ("waiting", "running", "kv_cache_usage", "waiting_deferred")


class Held:
    """The last gauges of one pod, by the engine on its page."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[float, float]] = {}
        """(engine label, gauge) → value, and when it was on the page."""

    def fill(self, sample: Sample, now: float) -> Sample:
        """Return `sample` with the gauges that it lacks, where they were there no more than `holds_s` ago.

        `now` is in seconds on a clock that does not jump. Counters are never held: a rate needs the real ones.
        """
        holds_s = ENGINES[sample.engine].holds_s
        if holds_s == 0:
            return sample
        self._last = {key: (value, seen) for key, (value, seen) in self._last.items() if now - seen <= holds_s}
        engines = dict(sample.engines)
        for (label, gauge), (value, _) in self._last.items():
            reading = engines.get(label, Reading())
            if getattr(reading, gauge) is None:
                engines[label] = _with(reading, gauge, value)
        for label, reading in sample.engines.items():
            for gauge in _GAUGES:
                if (value := getattr(reading, gauge)) is not None:
                    self._last[label, gauge] = value, now
        return sample if engines == sample.engines else _whole(sample, engines)


def _with(reading: Reading, gauge: str, value: float) -> Reading:
    unknown = {name: why for name, why in reading.unknown.items() if name != gauge}
    return replace(reading, unknown=unknown, **{gauge: value})  # type: ignore[arg-type]


def _whole(sample: Sample, engines: dict[str, Reading]) -> Sample:
    """Add the engines up anew; what the page as a whole did not tell and no engine tells now stays unknown."""
    total = combining.total(engines)
    still = {name: why for name, why in sample.unknown.items() if getattr(total, name, None) is None}
    values = {field.name: getattr(total, field.name) for field in fields(Reading)}
    return replace(sample, **values | {"unknown": still | dict(total.unknown)}, engines=engines)
