"""From samples to load: sums over pods, counters to rates, histogram buckets to quantiles."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from scaler.exposition.sample import HISTOGRAMS, Histogram, Sample
from scaler.exposition.sharing import shared
from scaler.policy.observation import Latency, Load
from scaler.sources.source import Unknown

_BASELINES = 4
"""Old samples kept in a look-back: a rate is measured over the look-back, give or take a quarter of it."""
_PODS_A_PIECE = 8
_ENOUGH_FINISHED = 20
"""Finished requests from which on their mean length is that of the look-back, not of the engine's whole life."""


@dataclass(frozen=True, slots=True)
class _Buckets:
    """A histogram of the past, in the little memory that a thousand targets' pasts should take."""

    bounds: tuple[float, ...]
    """Shared by all pods that have the same."""
    counts: array[float]
    sum: float


@dataclass(frozen=True, slots=True)
class _Baseline:
    """What a pod's counters said at an earlier moment."""

    time: float
    ongoing: float
    counters: Mapping[str, float]
    histograms: Mapping[str, _Buckets]


@dataclass(frozen=True, slots=True)
class _Change:
    """What happened in one pod between its baseline and now."""

    seconds: float
    counters: Mapping[str, float]
    arrivals: float | None
    histograms: Mapping[str, Histogram]


class LoadMeter:
    """Remembers enough of each pod's past to tell rates. One for each target."""

    def __init__(self, look_back_s: float) -> None:
        self._look_back_s = look_back_s
        self._baselines: dict[str, deque[_Baseline]] = {}
        self._latency: Mapping[str, Latency] = {}
        self._latency_time = -math.inf

    def measure(
        self,
        time: float,
        outcomes: Mapping[str, Sample | Unknown],
        gpu_utilization: Mapping[str, float] | None = None,
    ) -> Load:
        """Sum up what the ready pods said, by pod, at `time` (seconds, monotonic).

        Pods that are no longer among the outcomes are forgotten. `gpu_utilization` is by pod, 0 to 1.
        """
        pieces = self.measuring(time, outcomes, gpu_utilization)
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                load: Load = end.value
                return load

    def measuring(
        self,
        time: float,
        outcomes: Mapping[str, Sample | Unknown],
        gpu_utilization: Mapping[str, float] | None = None,
    ) -> Generator[None, None, Load]:
        """Do what `measure` does in pieces of some tenths of a millisecond, a yield after each: pods may be many."""
        samples = shared({pod: outcome for pod, outcome in outcomes.items() if isinstance(outcome, Sample)})
        unknown = {pod: outcome.reason for pod, outcome in outcomes.items() if isinstance(outcome, Unknown)}
        for pod in self._baselines.keys() - outcomes.keys():
            del self._baselines[pod]
        changes = []
        for i, (pod, sample) in enumerate(samples.items(), 1):
            if change := self._change(pod, time, sample):
                changes.append(change)
            if i % _PODS_A_PIECE == 0:
                yield
        if time - self._latency_time >= self._look_back_s / 10:
            latency = {}
            for name in HISTOGRAMS:
                if found := _latency(changes, name):
                    latency[name] = found
                if len(changes) >= _PODS_A_PIECE:
                    yield
            self._latency, self._latency_time = latency, time
        finished = _rate(changes, "requests_finished")
        generated = _rate(changes, "generation_tokens")
        return Load(
            known=len(samples),
            unknown=unknown,
            waiting=_sum(sample.waiting for sample in samples.values()),
            running=_sum(sample.running for sample in samples.values()),
            kv_cache_usage=_mean(sample.kv_cache_usage for sample in samples.values()),
            gpu_utilization=_mean(gpu_utilization.values()) if gpu_utilization else None,
            arrival_rate=_arrival_rate(changes),
            completion_rate=finished,
            prompt_token_rate=_rate(changes, "prompt_tokens"),
            generation_token_rate=generated,
            tokens_per_request=_tokens_per_request(changes, samples.values()),
            most_running=max((s.running for s in samples.values() if s.running is not None), default=None),
            full_running=_mean(s.running for s in samples.values() if _is_full(s)),
            latency=self._latency,
        )

    def _change(self, pod: str, time: float, sample: Sample) -> _Change | None:
        """Compare with the oldest baseline that the look-back still wants, and keep this sample as one."""
        past = self._baselines.setdefault(pod, deque())
        while len(past) > 1 and past[1].time <= time - self._look_back_s:
            past.popleft()
        change = _difference(past[0], time, sample) if past and time > past[0].time else None
        if not past or time - past[-1].time >= self._look_back_s / _BASELINES:
            histograms = {name: _compact(histogram) for name, histogram in sample.histograms.items()}
            past.append(_Baseline(time, _ongoing(sample), sample.counters, histograms))
        return change


@lru_cache(maxsize=256)
def _shared(bounds: tuple[float, ...]) -> tuple[float, ...]:
    return bounds


def _compact(histogram: Histogram) -> _Buckets:
    return _Buckets(_shared(histogram.bounds), array("d", histogram.counts), histogram.sum)


def _ongoing(sample: Sample) -> float:
    return math.nan if sample.waiting is None or sample.running is None else sample.waiting + sample.running


def _is_full(sample: Sample) -> bool:
    """Tell whether requests stand in the pod's queue: one alone may just be between two engine steps."""
    return sample.waiting is not None and sample.waiting >= 2


def _difference(before: _Baseline, time: float, sample: Sample) -> _Change:
    counters = {
        name: _increase(before.counters[name], value)
        for name, value in sample.counters.items()
        if name in before.counters
    }
    finished = counters.get("requests_finished")
    arrivals = None if finished is None else max(0.0, finished + _ongoing(sample) - before.ongoing)
    histograms = {
        name: _histogram_increase(before.histograms[name], histogram)
        for name, histogram in sample.histograms.items()
        if name in before.histograms and before.histograms[name].bounds == histogram.bounds
    }
    return _Change(
        time - before.time, counters, None if arrivals is None or math.isnan(arrivals) else arrivals, histograms
    )


def _increase(before: float, now: float) -> float:
    """Return how much a counter grew; one that fell began anew at 0 (as Prometheus' `increase` has it)."""
    return now - before if now >= before else now


def _histogram_increase(before: _Buckets, now: Histogram) -> Histogram:
    if now.counts[-1] < before.counts[-1]:
        return now
    counts = tuple(n - b for n, b in zip(now.counts, before.counts, strict=True))
    return Histogram(now.bounds, counts, now.sum - before.sum)


def _sum(values: Iterable[float | None]) -> float | None:
    """Add up; None when nothing is there or one part is unknown."""
    total, some = 0.0, False
    for value in values:
        if value is None:
            return None
        total, some = total + value, True
    return total if some else None


def _mean(values: Iterable[float | None]) -> float | None:
    """Average over what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _rate(changes: Sequence[_Change], counter: str) -> float | None:
    return _sum(c.counters[counter] / c.seconds for c in changes if counter in c.counters)


def _arrival_rate(changes: Sequence[_Change]) -> float | None:
    return _sum(c.arrivals / c.seconds for c in changes if c.arrivals is not None)


def _tokens_per_request(changes: Sequence[_Change], samples: Iterable[Sample]) -> float | None:
    """Return generated tokens per finished request.

    Of the look-back when enough finished in it, else of the engines' lives: those who finish first are short.
    """
    finished = math.fsum(c.counters.get("requests_finished", 0.0) for c in changes)
    if finished >= _ENOUGH_FINISHED:
        return math.fsum(c.counters.get("generation_tokens", 0.0) for c in changes) / finished
    lives = [s.counters for s in samples if "requests_finished" in s.counters and "generation_tokens" in s.counters]
    finished = math.fsum(life["requests_finished"] for life in lives)
    return math.fsum(life["generation_tokens"] for life in lives) / finished if finished else None


def _latency(changes: Sequence[_Change], name: str) -> Latency | None:
    """Return the quantiles of one histogram over all pods; None where nothing happened."""
    parts = [c.histograms[name] for c in changes if name in c.histograms and c.histograms[name].counts[-1] > 0]
    if not parts:
        return None
    bounds = parts[0].bounds
    same = [part for part in parts if part.bounds == bounds]
    counts = [math.fsum(column) for column in zip(*(part.counts for part in same), strict=True)]
    p50, p90, p95, p99 = (quantile(q, bounds, counts) for q in (0.5, 0.9, 0.95, 0.99))
    worst = max(quantile(0.95, part.bounds, part.counts) for part in parts)
    return Latency(p50, p90, p95, p99, worst)


def quantile(q: float, bounds: Sequence[float], counts: Sequence[float]) -> float:
    """Return the `q` quantile of cumulative buckets, linear within a bucket (Prometheus' histogram_quantile).

    Beyond the last finite bound it is that bound: more cannot be told.
    """
    rank = q * counts[-1]
    i = next(i for i, count in enumerate(counts) if count >= rank)
    if math.isinf(bounds[i]):
        return bounds[i - 1] if i else 0.0
    low, below = (bounds[i - 1], counts[i - 1]) if i else (0.0, 0.0)
    inside = counts[i] - below
    return bounds[i] if inside <= 0 else low + (bounds[i] - low) * (rank - below) / inside
