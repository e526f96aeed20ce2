"""A trace: requests over time, drawn anew for each seed as far as the source leaves something to chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inference.simulated import Request
from inference.simulated.traffic import CHAT, RequestClass
from scaler.backtest.traces.lines import TraceError

MOST_REQUESTS = 10_000_000
"""More would not fit into the memory of a small machine."""

MOST_TIMES = 1000.0
"""The most that a trace may be multiplied by."""
COPY_SPREAD_S = 5.0

Draw = Callable[[int], Sequence[Request]]
"""Seed → the requests of the trace in order of arrival. Picklable, since runs are spread over processes."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Traffic with the limits and the start-up time that go with it where nobody says otherwise."""

    name: str
    duration_s: float
    draw: Draw
    minimum: int = 1
    maximum: int = 16
    start_up_s: float = 60.0

    def requests(self, seed: int) -> Sequence[Request]:
        """Return the requests in order of arrival, all within [0, `duration_s`)."""
        return self.draw(seed)

    def between(self, begin_s: float, end_s: float) -> Trace:
        """Return the part from `begin_s` until `end_s`, which becomes a trace that begins at 0."""
        end_s = min(end_s, self.duration_s)
        if not 0 <= begin_s < end_s:
            raise TraceError(
                f"{self.name} lasts {self.duration_s:g} s: there is nothing from {begin_s:g} to {end_s:g} s"
            )
        if begin_s == 0 and end_s == self.duration_s:
            return self
        draw = self.draw
        part = draw.between(begin_s, end_s) if isinstance(draw, Windows) else _Part(draw, begin_s, end_s)
        return replace(self, duration_s=end_s - begin_s, draw=part)

    def scaled(self, factor: float) -> Trace:
        """Return the trace with `factor` times as many requests.

        Single requests stay, or are doubled, with the probability that makes it so. A copy comes within
        `COPY_SPREAD_S` after its original: bursts stay bursts, and no two requests fall on the same moment.
        """
        if not 0 < factor <= MOST_TIMES:
            raise TraceError(f"scale {factor:g} is wrong; right is a number above 0, up to {MOST_TIMES:g}")
        if isinstance(self.draw, Windows):
            return replace(self, draw=replace(self.draw, rate=self.draw.rate * factor))
        return self if factor == 1 else replace(self, draw=_Scaled(self.draw, factor, self.duration_s))


@dataclass(frozen=True, slots=True)
class _Part:
    whole: Draw
    begin_s: float
    end_s: float

    def __call__(self, seed: int) -> Sequence[Request]:
        return [
            replace(request, arrival_s=request.arrival_s - self.begin_s)
            for request in self.whole(seed)
            if self.begin_s <= request.arrival_s < self.end_s
        ]


@dataclass(frozen=True, slots=True)
class _Scaled:
    whole: Draw
    factor: float
    duration_s: float

    def __call__(self, seed: int) -> Sequence[Request]:
        chance = random.Random(f"scaling of seed {seed}")
        whole, share = divmod(self.factor, 1)
        requests = []
        for request in self.whole(seed):
            times = int(whole) + (chance.random() < share)
            if times:
                requests.append(request)
            for _ in range(times - 1):
                arrival_s = request.arrival_s + COPY_SPREAD_S * chance.random()
                if arrival_s < self.duration_s:
                    requests.append(replace(request, arrival_s=arrival_s))
        return sorted(requests, key=lambda request: request.arrival_s)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Requests that a file lists one by one."""

    arrival_s: NDArray[np.float64]
    """Sorted, from 0 on."""
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    cached_tokens: NDArray[np.int64]
    spread_s: NDArray[np.float64] | None = None
    """How far behind its time each request may come, where the file's clock is coarse."""

    def __call__(self, seed: int) -> Sequence[Request]:
        """Return the requests; the seed says where within `spread_s` each one comes."""
        columns = [self.prompt_tokens, self.output_tokens, self.cached_tokens]
        times = self.arrival_s
        if self.spread_s is not None:
            times = times + self.spread_s * np.random.default_rng(seed).random(len(times))
            order = np.argsort(times, kind="stable")
            times, columns = times[order], [column[order] for column in columns]
        rows = zip(times.tolist(), *(column.tolist() for column in columns), strict=True)
        return [Request(time, prompt, output, "listed", cached) for time, prompt, output, cached in rows]


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Rates by window, from which the requests are drawn as a Poisson process."""

    start_s: NDArray[np.float64]
    """Ascending; a window ends where the next begins."""
    end_s: float
    rate: NDArray[np.float64]
    """Requests per second."""
    kind: RequestClass = CHAT
    """Where the lengths come from, which a table of rates does not have."""

    def between(self, begin_s: float, end_s: float) -> Windows:
        """Return the part from `begin_s` until `end_s`, with times from 0 on."""
        first = int(np.searchsorted(self.start_s, begin_s, side="right")) - 1
        last = int(np.searchsorted(self.start_s, end_s, side="left"))
        starts = np.maximum(self.start_s[first:last] - begin_s, 0.0)
        return replace(self, start_s=starts, end_s=min(end_s, self.end_s) - begin_s, rate=self.rate[first:last])

    def __call__(self, seed: int) -> Sequence[Request]:
        """Return the requests of this seed."""
        chance, lengths = np.random.default_rng(seed), random.Random(seed)
        widths = np.diff(self.start_s, append=self.end_s)
        expected = float(np.sum(self.rate * widths))
        if expected > MOST_REQUESTS:
            raise TraceError(
                f"the rates make about {expected:,.0f} requests, and {MOST_REQUESTS:,} are the most; "
                "right is a smaller scale, or a part of the trace"
            )
        counts = chance.poisson(self.rate * widths)
        times = np.repeat(self.start_s, counts) + np.repeat(widths, counts) * chance.random(int(counts.sum()))
        times.sort()
        kind = self.kind
        requests = []
        for time in times.tolist():
            prompt = kind.prompt.draw(lengths)
            requests.append(
                Request(time, prompt, kind.output.draw(lengths), kind.name, int(prompt * kind.cached_share))
            )
        return requests
