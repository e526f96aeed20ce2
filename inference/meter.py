"""What a replica does, as its own load: rates and latency quantiles over a look-back. No clock, no I/O."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from scaler.policy import Latency, Load

LOOK_BACK_S = 30.0


@dataclass(frozen=True, slots=True)
class Gauges:
    """What an engine says of this moment; None for what it does not say."""

    waiting: float | None = None
    running: float | None = None
    kv_cache_usage: float | None = None


@dataclass(frozen=True, slots=True)
class _Finished:
    time: float
    tokens: int | None


class Meter:
    """Remembers the requests of the last seconds. Times are seconds on any clock that does not jump."""

    def __init__(self, look_back_s: float = LOOK_BACK_S) -> None:
        self._look_back_s = look_back_s
        self._began: float | None = None
        self._arrivals: deque[float] = deque()
        self._finished: deque[_Finished] = deque()
        self._seconds: dict[str, deque[tuple[float, float]]] = {name: deque() for name in ("ttft", "tpot", "e2e")}

    def arrived(self, time: float) -> None:
        """Take note of a request that came."""
        self._began = time if self._began is None else self._began
        self._arrivals.append(time)
        self._forget(time)

    def first_token(self, time: float, seconds: float) -> None:
        """Take note of a first token, so many seconds after its request came."""
        self._seconds["ttft"].append((time, seconds))

    def finished(self, time: float, seconds: float, tokens: int | None, token_s: float | None) -> None:
        """Take note of a request that was served; its tokens and its mean time for one are None where unknown."""
        self._finished.append(_Finished(time, tokens))
        self._seconds["e2e"].append((time, seconds))
        if token_s is not None:
            self._seconds["tpot"].append((time, token_s))

    def load(self, time: float, waiting: float, gauges: Gauges, running: float) -> Load:
        """Return the replica's load. `waiting` stand before the engine, `running` are in it by our own count."""
        self._forget(time)
        passed = min(self._look_back_s, time - self._began) if self._began is not None else 0.0
        tokens = [each.tokens for each in self._finished]
        counted = [count for count in tokens if count is not None]
        generated = float(sum(counted)) if len(counted) == len(tokens) else None
        in_queue = gauges.waiting or 0.0
        in_batch = max(0.0, running - in_queue) if gauges.running is None else gauges.running
        return Load(
            known=1,
            waiting=waiting + in_queue,
            running=in_batch,
            kv_cache_usage=gauges.kv_cache_usage,
            arrival_rate=_rate(len(self._arrivals), passed),
            completion_rate=_rate(len(self._finished), passed),
            generation_token_rate=None if generated is None else _rate(generated, passed),
            tokens_per_request=generated / len(tokens) if tokens and generated is not None else None,
            most_running=in_batch,
            full_running=in_batch if waiting + in_queue >= 2 else None,
            latency=self._latency(),
        )

    def _forget(self, time: float) -> None:
        """Drop what is older than the look-back: also where nobody ever asks for the load, as in a plain pod."""
        since = time - self._look_back_s
        while self._arrivals and self._arrivals[0] < since:
            self._arrivals.popleft()
        while self._finished and self._finished[0].time < since:
            self._finished.popleft()
        for seen in self._seconds.values():
            while seen and seen[0][0] < since:
                seen.popleft()

    def _latency(self) -> Mapping[str, Latency]:
        found = {}
        for name, seen in self._seconds.items():
            if ordered := sorted(seconds for _, seconds in seen):
                p50, p90, p95, p99 = (ordered[math.ceil(q * len(ordered)) - 1] for q in (0.5, 0.9, 0.95, 0.99))
                found[name] = Latency(p50, p90, p95, p99, worst_p95=p95)
        return found


def _rate(count: float, seconds: float) -> float | None:
    return count / seconds if seconds > 0 else None
