"""What rivals read: sums over pages as Prometheus makes them, requests in flight, and the length of prompts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scaler.backtest.contender import Gateway, Seen
from scaler.exposition.sample import Sample


def pages(seen: Seen) -> dict[str, Sample]:
    """Return the pages that were read, by pod."""
    return {pod.name: pod.sample for pod in seen.pods if pod.phase == "ready" and pod.sample is not None}


def total(values: Iterable[float | None]) -> float:
    """Add up the series that are there, 0 without any: PromQL's `sum(…) or vector(0)`."""
    return math.fsum(value for value in values if value is not None)


def waiting(seen: Seen) -> float:
    """Requests that wait, in engines and at the gateway."""
    return total(page.waiting for page in pages(seen).values()) + seen.gateway.waiting


def per_ready_pod(seen: Seen, value: Callable[[Sample], float | None]) -> float | None:
    """Return a value's mean over the pods that show it; None where no pod does."""
    known = [number for page in pages(seen).values() if (number := value(page)) is not None]
    return math.fsum(known) / len(known) if known else None


def concurrency(seen: Seen) -> float | None:
    """Requests in flight: the mean over the pods that were read, times the ready pods, and what the gateway holds.

    None where pods are ready and none of them could be read.
    """
    ready = sum(pod.phase == "ready" for pod in seen.pods)
    if not ready:
        return float(seen.gateway.waiting)
    mean = per_ready_pod(seen, _in_flight)
    return None if mean is None else mean * ready + seen.gateway.waiting


def _in_flight(page: Sample) -> float | None:
    return None if page.waiting is None or page.running is None else page.waiting + page.running


@dataclass(frozen=True, slots=True)
class Prompts:
    """Mean tokens of the prompts that arrived."""

    tokens: float = 0.0
    cached: float = 0.0
    """Part of them that a prefix cache may hold."""


class PromptMeter:
    """Means over the requests that arrived in the last `window_s`; the last known ones while none arrives."""

    def __init__(self, window_s: float = 300.0) -> None:
        self._window_s = window_s
        self._past: deque[tuple[float, Gateway]] = deque([(0.0, Gateway())])
        self._known = Prompts()

    def measure(self, seen: Seen) -> Prompts:
        """Return the means at this look."""
        self._past.append((seen.time, seen.gateway))
        while len(self._past) > 2 and self._past[1][0] <= seen.time - self._window_s:
            self._past.popleft()
        before, now = self._past[0][1], seen.gateway
        if requests := now.requests - before.requests:
            tokens, cached = now.prompt_tokens - before.prompt_tokens, now.cached_tokens - before.cached_tokens
            self._known = Prompts(tokens / requests, cached / requests)
        return self._known
