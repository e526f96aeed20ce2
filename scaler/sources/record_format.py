"""The lines of a recording: what a target's replicas were and what its pods' pages said, tick by tick.

A recording is JSON, one object a line:

``{"recording": "vllm-scaler", "version": 1}``
    The first line, and again wherever a new run was appended. It empties the table of bounds.
``{"bounds": [0.001, 0.005, …]}``
    A histogram's upper bounds in seconds, the last one (infinity) left out. They are numbered from 0 in the order
    in which they appear, and stand before the first tick that needs them.
``{"time": …, "target": "NAMESPACE/NAME", "requested": …, …, "pods": {…}}``
    One tick of one target: the fields of `Tick` under their own names. A pod that was read is an object with the
    fields of `Sample`, where what is None, false or empty is left out; a pod that was not is a string, the reason.
    A histogram is ``[number of its bounds, counts, sum]``. Under ``engines``, null stands for an engine that says
    exactly what the page says: the usual page of one engine.

One pod takes about 1 KB a tick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pydantic import TypeAdapter, ValidationError

from scaler.exposition.sample import Reading, Sample
from scaler.quoting import quoted
from scaler.sources.source import Unknown

VERSION = 1
HEADER = {"recording": "vllm-scaler", "version": VERSION}

Bounds = tuple[float, ...]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick of one target: enough to decide again, with another policy, what was decided then."""

    time: float
    """Unix time in seconds."""
    target: str
    """`NAMESPACE/NAME` of the ScaledObject."""
    requested: int
    """`spec.replicas`"""
    current: int
    """`status.replicas`"""
    ready: int
    starting: int
    terminating: int
    unschedulable: int
    minimum: int
    maximum: int
    pods: Mapping[str, Sample | Unknown]
    """What every ready pod said."""
    unschedulable_s: float = 0.0
    """For how long the oldest unschedulable pod had waited, and what it lacked."""
    lacks: str = ""


def encode(tick: Tick, number_of: Callable[[Bounds], int]) -> Json:
    """Return the line of `tick`; `number_of` gives the number of a histogram's bounds, `inf` included."""
    line = {field.name: getattr(tick, field.name) for field in fields(tick)}
    line["pods"] = {
        pod: said.reason if isinstance(said, Unknown) else _sample_to_json(said, number_of)
        for pod, said in tick.pods.items()
    }
    return line


def decode(line: Json, bounds: Sequence[Bounds]) -> Tick:
    """Return the tick of a line. Raises ValueError, which names the field and what would be right."""
    pods = line.get("pods")
    if isinstance(pods, dict):
        line = line | {"pods": {pod: _sample_from_json(said, bounds) for pod, said in pods.items()}}
    try:
        return _TICK.validate_python(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg']}, found {quoted(first['input'])}") from None


_TICK = TypeAdapter(Tick)


def _sample_to_json(sample: Sample, number_of: Callable[[Bounds], int]) -> Json:
    page = _reading_to_json(sample, number_of)
    engines = {label: _reading_to_json(engine, number_of) for label, engine in sample.engines.items()}
    return page | {
        "engine": sample.engine,
        "engines": {label: None if engine == page else engine for label, engine in engines.items()},
    }


def _reading_to_json(reading: Reading, number_of: Callable[[Bounds], int]) -> Json:
    line = {}
    for field in fields(Reading):
        value = getattr(reading, field.name)
        if value is None or value is False or value == {}:
            continue
        line[field.name] = dict(value) if isinstance(value, Mapping) else value
    if reading.histograms:
        line["histograms"] = {
            name: (number_of(histogram.bounds), histogram.counts, histogram.sum)
            for name, histogram in reading.histograms.items()
        }
    return line


def _sample_from_json(said: object, bounds: Sequence[Bounds]) -> object:
    """Undo what is short in the file; whatever is not as it should be stays, for the validation to name."""
    if isinstance(said, str):
        return Unknown(said)
    if not isinstance(said, dict):
        return said
    page = _reading_from_json(said, bounds)
    engines = page.pop("engines", {})
    if isinstance(engines, dict):
        engines = {
            label: page if engine is None else _reading_from_json(engine, bounds) for label, engine in engines.items()
        }
    return page | {"engines": engines}


def _reading_from_json(reading: Json, bounds: Sequence[Bounds]) -> Json:
    match reading:
        case {"histograms": dict(histograms)}:
            whole = {name: _histogram_from_json(value, bounds) for name, value in histograms.items()}
            return reading | {"histograms": whole}
        case _:
            return reading


def _histogram_from_json(value: object, bounds: Sequence[Bounds]) -> object:
    match value:
        case [int(number), list(counts), total] if 0 <= number < len(bounds) and len(counts) == len(bounds[number]):
            return {"bounds": bounds[number], "counts": counts, "sum": total}
        case _:
            return value
