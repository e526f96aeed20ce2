"""CSV traces: requests one by one (Azure's and a plain form), or rates by window (ServeGen's). One reader for all."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from scaler.backtest.traces.lines import LONGEST_S, TraceError, whole_number
from scaler.backtest.traces.trace import Draw, Listed, Windows

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?")

Row = Sequence[str]
Reader = Callable[[str, Iterator[tuple[int, str]]], tuple[Draw, float]]


def seconds(text: str) -> float:
    """Read a time: `2023-11-16 18:17:03.9799600` (any number of decimals, UTC unless it says otherwise), or seconds.

    Raises ValueError.
    """
    match = _STAMP.fullmatch(text)
    if match is None:
        time = float(text)
        if not math.isfinite(time):
            raise ValueError(text)
        return time
    whole, fraction, zone = match.groups()
    return _unix(whole, zone or "+00:00") + (float(fraction) if fraction else 0.0)


@lru_cache(maxsize=4096)
def _unix(whole: str, zone: str) -> float:
    return datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).astimezone(UTC).timestamp()


@dataclass(frozen=True, slots=True)
class _Form:
    """A kind of table: what its columns are called."""

    time: str
    values: tuple[str, ...]
    optional: tuple[str, ...] = ()


_REQUESTS = (
    _Form("timestamp", ("contexttokens", "generatedtokens")),  # Azure's public LLM inference traces
    _Form("arrival_s", ("prompt_tokens", "output_tokens"), ("cached_tokens",)),
)
_RATES = _Form("window_start_s", ("requests_per_s",))  # ServeGen's clients, summed up by window

HEADERS = (
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "arrival_s,prompt_tokens,output_tokens[,cached_tokens]",
    "window_start_s,requests_per_s",
)
"""First lines that are known, for people."""


def reader(header: str) -> Callable[[str, Iterator[tuple[int, str]]], tuple[Draw, float]] | None:
    """Return what reads the lines below this header into (draw, duration in seconds); None for no known header."""
    names = [name.strip().strip('"').lower() for name in header.split(",")]
    for form in _REQUESTS:
        if {form.time, *form.values} <= set(names):
            return _Requests(names, form)
    if {_RATES.time, *_RATES.values} <= set(names):
        return _Rates(names)
    return None


@dataclass(frozen=True, slots=True)
class _Requests:
    names: list[str]
    form: _Form

    def __call__(self, source: str, lines: Iterator[tuple[int, str]]) -> tuple[Draw, float]:
        form, names = self.form, self.names
        at = names.index(form.time)
        prompt_at, output_at = (names.index(name) for name in form.values)
        cached_at = next((names.index(name) for name in form.optional if name in names), None)
        times: list[float] = []
        tokens: list[tuple[int, int, int]] = []
        for number, line in lines:
            row = _cells(source, number, line, names)
            time = _time(source, number, row[at])
            if times and abs(time - times[0]) > LONGEST_S:
                raise TraceError(
                    f"{source}, line {number}: the time {row[at]!r:.60} is more than a year away from the first one; "
                    "times of one clock are expected"
                )
            times.append(time)
            prompt = whole_number(source, number, names[prompt_at], row[prompt_at], least=1)
            output = whole_number(source, number, names[output_at], row[output_at], least=0)
            cached = 0
            if cached_at is not None and row[cached_at]:
                cached = whole_number(source, number, names[cached_at], row[cached_at], least=0, most=prompt)
            tokens.append((prompt, max(1, output), cached))  # an answer of no token has cost the first one all the same
        return listed(source, times, tokens)


def listed(
    source: str, times: Sequence[float], tokens: Sequence[tuple[int, int, int]], spread: bool = False
) -> tuple[Draw, float]:
    """Return the draw of requests in any order: (prompt, output, cached) tokens each; and the duration in seconds.

    With `spread`, those that share a time are spread over the time until the next one, at most over the usual step.
    """
    if not times:
        raise TraceError(f"{source} holds no request below its first line")
    order = np.argsort(np.asarray(times), kind="stable")
    arrival = np.asarray(times, dtype=np.float64)[order]
    arrival -= arrival[0]
    columns = np.asarray(tokens, dtype=np.int64)[order]
    steps = np.diff(np.unique(arrival))
    usual = float(np.median(steps)) if len(steps) else 1.0
    gaps = None
    if spread:
        starts, group = np.unique(arrival, return_inverse=True)
        gaps = np.minimum(np.diff(starts, append=starts[-1] + usual), usual)[group]
    duration = float(arrival[-1]) + (usual if spread else min(usual, 1.0))
    return Listed(arrival, columns[:, 0], columns[:, 1], columns[:, 2], gaps), duration


@dataclass(frozen=True, slots=True)
class _Rates:
    names: list[str]

    def __call__(self, source: str, lines: Iterator[tuple[int, str]]) -> tuple[Draw, float]:
        at, rate_at = self.names.index(_RATES.time), self.names.index(_RATES.values[0])
        starts: list[float] = []
        rates: list[float] = []
        for number, line in lines:
            row = _cells(source, number, line, self.names)
            start = _time(source, number, row[at])
            if len(starts) > 1 and not math.isclose(start - starts[-1], starts[1] - starts[0], rel_tol=1e-6):
                raise TraceError(
                    f"{source}, line {number}: the window begins at {start:g} s; "
                    f"{2 * starts[-1] - starts[-2]:g} is expected, since all windows are equally long: "
                    "a hole is not a rate of 0, so fill it or cut the file there"
                )
            starts.append(start)
            rates.append(_rate(source, number, row[rate_at]))
        if len(starts) < 2 or starts[1] <= starts[0]:
            raise TraceError(f"{source} holds {len(starts)} window(s); at least two are expected, in order of time")
        width = starts[1] - starts[0]
        begin = np.asarray(starts) - starts[0]
        end = float(begin[-1]) + width
        return Windows(begin, end, np.asarray(rates)), end


def _cells(source: str, number: int, line: str, names: Sequence[str]) -> Row:
    row = [cell.strip().strip('"') for cell in line.split(",")]
    if len(row) != len(names):
        raise TraceError(f"{source}, line {number}: {len(row)} columns; {len(names)} are expected: {','.join(names)}")
    return row


def _time(source: str, number: int, text: str) -> float:
    try:
        return seconds(text)
    except ValueError:
        raise TraceError(
            f"{source}, line {number}: the time is {text!r:.60}; seconds or 2023-11-16 18:17:03.97996 is expected"
        ) from None


def _rate(source: str, number: int, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 <= rate < math.inf:
        raise TraceError(f"{source}, line {number}: the rate is {text!r:.60}; requests/s of 0 or more are expected")
    return rate
