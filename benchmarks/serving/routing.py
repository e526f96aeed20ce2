"""Eight replicas, one of which is slow, and what a router gains by knowing how slow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.serving.traffic import EVEN, MIXED, PLAYED_S, SEEDS, TPOT_S, TTFT_S, Traffic, slowed
from inference.simulated import PROFILES, Engine, Finished, Profile
from inference.simulated.traffic import arrivals, constant

REPLICAS = 8
USE = {EVEN.name: 0.8, MIXED.name: 1.0}
"""Of the lowest of a traffic's rates."""
REPORT_S = 5.0
"""How often replicas report their latency, as Serve asks them for routing stats."""


@dataclass
class Seen:
    """What a router may know."""

    engines: Sequence[Engine]
    source: random.Random
    token_s: list[float] = field(default_factory=lambda: [1.0] * REPLICAS)
    """Time per token of each replica, of its last report."""

    def weights(self) -> list[float]:
        return [1 / seconds for seconds in self.token_s]


Router = Callable[[Seen], int]


def blind(seen: Seen) -> int:
    return seen.source.randrange(REPLICAS)


def two_choices(seen: Seen) -> int:
    """Ray Serve's own: of two by chance that which has fewer requests."""
    few = seen.source.sample(range(REPLICAS), 2)
    return min(few, key=lambda i: seen.engines[i].outstanding)


def weighted_choices(seen: Seen) -> int:
    """Of two, of which the fast are drawn more often, that which has fewer requests."""
    few = seen.source.choices(range(REPLICAS), seen.weights(), k=2)
    return min(few, key=lambda i: seen.engines[i].outstanding)


def weighted_requests(seen: Seen) -> int:
    """Of two by chance that where a request would have the least time for a token before it."""
    few = seen.source.sample(range(REPLICAS), 2)
    return min(few, key=lambda i: (seen.engines[i].outstanding + 1) * seen.token_s[i])


ROUTERS: dict[str, Router] = {
    "by chance": blind,
    "two choices (Serve's)": two_choices,
    "…, drawn by latency": weighted_choices,
    "…, requests × latency": weighted_requests,
}


def table() -> Iterator[list[str]]:
    """Requests that keep their objectives, and p95 of the whole latency; the head first."""
    yield ["replica", "traffic", "one of eight is", *ROUTERS]
    for profile in PROFILES.values():
        for traffic in (EVEN, MIXED):
            for factor in (1.0, 1.5, 2.0):
                cells = [_cell(profile, traffic, factor, router) for router in ROUTERS.values()]
                slow = "like the others" if factor == 1 else f"{factor:g} × slower"
                yield [profile.name, traffic.name, slow, *cells]


def _cell(profile: Profile, traffic: Traffic, factor: float, router: Router) -> str:
    finished = [event for seed in SEEDS[:1] for event in _play(profile, traffic, factor, router, seed)]
    kept = sum(event.ttft_s <= TTFT_S and event.tpot_s <= TPOT_S for event in finished) / len(finished)
    p95 = sorted(event.e2e_s for event in finished)[int(0.95 * (len(finished) - 1))]
    return f"{kept:.0%}, {p95:.0f} s"


def _play(profile: Profile, traffic: Traffic, factor: float, router: Router, seed: int) -> Iterator[Finished]:
    engines = [Engine(slowed(profile, factor if i == 0 else 1.0), seed=seed * 97 + i) for i in range(REPLICAS)]
    seen = Seen(engines, random.Random(seed))
    told = [(0, 0.0)] * REPLICAS
    due = REPORT_S
    rate = constant(REPLICAS * USE[traffic.name] * traffic.rates[0])
    for request in arrivals(rate, PLAYED_S, mix=traffic.mix, seed=seed):
        for engine in engines:
            yield from (event for event in engine.advance(request.arrival_s) if isinstance(event, Finished))
        if request.arrival_s >= due:
            due = request.arrival_s + REPORT_S
            for i, engine in enumerate(engines):
                latency = engine.metrics.inter_token_latency
                count, total = latency.count - told[i][0], latency.total - told[i][1]
                told[i] = latency.count, latency.total
                seen.token_s[i] = total / count if count else seen.token_s[i]
        engines[router(seen)].submit(request, request.arrival_s)
    now = PLAYED_S
    while any(engine.outstanding for engine in engines):
        now += REPORT_S
        for engine in engines:
            yield from (event for event in engine.advance(now) if isinstance(event, Finished))
