"""A recording of `serve --record` as a trace: the arrivals that pods' counters tell of, drawn anew.

A recording has no single requests. Their times are drawn from the rate at each tick; their lengths around the mean
lengths of the whole recording.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from inference.simulated.traffic import Lengths, RequestClass
from scaler.backtest.traces.lines import TraceError
from scaler.backtest.traces.trace import Trace, Windows
from scaler.exposition.sample import Sample
from scaler.sources.record_format import Tick
from scaler.sources.recording import read_recording
from scaler.sources.replay import GAP_S
from scaler.targets.load import LoadMeter

_LOOK_BACK_S = 10.0
"""A rate is measured over so long: more would blur what the traffic did."""
_SIGMA = 0.8
"""Spread of the lengths around their mean (standard deviation of the logarithm): an assumption."""


def ticks_of(path: Path, target: str | None = None) -> list[Tick]:
    """Return one target's ticks. Raises OSError, RecordingError, and TraceError where the target must be named."""
    ticks: dict[str, list[Tick]] = {}
    for tick in read_recording(path):
        ticks.setdefault(tick.target, []).append(tick)
    if not ticks:
        raise TraceError(f"{path} holds no tick")
    if target is None and len(ticks) == 1:
        (target,) = ticks
    if target not in ticks:
        raise TraceError(f"{path}: --target {target or 'is needed'}; the recording has {', '.join(sorted(ticks))}")
    return ticks[target]


def read(path: Path, target: str | None = None) -> Trace:
    """Return the trace of a target. Where the recording pauses for more than a minute, the pause is left out.

    Raises as `ticks_of` does, and TraceError where nothing arrived.
    """
    ticks = ticks_of(path, target)
    starts = list(_times(ticks))
    rates = list(_rates(ticks))
    prompt, output = _mean_lengths(path, ticks)
    kind = RequestClass(
        "recorded",
        Lengths(max(1, round(prompt * math.exp(-(_SIGMA**2) / 2))), _SIGMA),
        Lengths(max(1, round(output * math.exp(-(_SIGMA**2) / 2))), _SIGMA),
    )
    end = starts[-1] + (starts[-1] - starts[-2] if len(starts) > 1 else 1.0)
    # What is measured at a tick is about the time before it.
    windows = Windows(np.asarray(starts), end, np.asarray([*rates[1:], rates[-1]]), kind)
    last = ticks[-1]
    return Trace(path.name, end, windows, last.minimum, last.maximum)


def _times(ticks: list[Tick]) -> Iterator[float]:
    """Seconds since the first tick, pauses left out."""
    time = 0.0
    yield time
    for before, after in pairwise(ticks):
        passed = after.time - before.time
        time += passed if 0 < passed <= GAP_S else 1e-3
        yield time


def _rates(ticks: list[Tick]) -> Iterator[float]:
    """Requests per second at each tick; where a pod's page is unknown, what it was before."""
    meter, rate = LoadMeter(_LOOK_BACK_S), 0.0
    for tick in ticks:
        load = meter.measure(tick.time, tick.pods)
        if not load.unknown and load.arrival_rate is not None:
            rate = load.arrival_rate
        yield rate


def _mean_lengths(path: Path, ticks: list[Tick]) -> tuple[float, float]:
    """Prompt and output tokens of a request: of all that finished in the pods' lives."""
    last: dict[str, Sample] = {}
    for tick in ticks:
        last.update({pod: said for pod, said in tick.pods.items() if isinstance(said, Sample)})
    finished, prompt, output = (
        math.fsum(said.counters.get(name, 0.0) for said in last.values())
        for name in ("requests_finished", "prompt_tokens", "generation_tokens")
    )
    if not (finished and prompt and output):
        raise TraceError(f"{path}: no request finished in the recording, so it tells nothing of their lengths")
    return prompt / finished, output / finished
