"""One replica and the gate before it: the share of requests that keep their objectives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.serving.traffic import LONG_FROM, PLAYED_S, SEEDS, TPOT_S, TRAFFIC, TTFT_S, Traffic
from inference.admission import AdaptiveLimit, Admission, RequestClass
from inference.settings import GateSettings
from inference.simulated import PROFILES, Engine, Finished, Profile, Request
from inference.simulated.traffic import arrivals, constant

STEP_S = 0.1
FIXED = 64


class Unlimited(AdaptiveLimit):
    """All that come go into the engine."""

    @property
    def value(self) -> int:
        return 1_000_000


class Fixed(AdaptiveLimit):
    """So many at once, whatever happens."""

    @property
    def value(self) -> int:
        return FIXED


class Halving(AdaptiveLimit):
    """As batch sizes are often adapted: half when the p95 of the last window is over the objective, one more else."""

    def adapt(self, time: float, running: int) -> None:  # noqa: ARG002
        if self._moved_at is not None and time - self._moved_at < 5:
            return
        self._moved_at = time
        window = sorted(seconds for at, seconds in self._token_times if at > time - 15)
        tail = window[-(len(window) // 20 + 1)] if window else 0.0
        self._value = max(8, self._value / 2) if tail > TPOT_S else min(256, self._value + 1)


@dataclass(frozen=True, slots=True)
class Way:
    """A gate, by the name that it has in the table."""

    name: str
    limit: Callable[[GateSettings], AdaptiveLimit]
    long_share: float = 1.0


LIMITS = (
    Way("no limit", Unlimited),
    Way(f"at most {FIXED}", Fixed),
    Way("half at p95", Halving),
    Way("the gate", AdaptiveLimit),
)
SHARES = tuple(Way(f"{share:.0%}", AdaptiveLimit, share) for share in (1.0, 0.5, 0.25, 0.1))


def limits() -> Iterator[list[str]]:
    """The table of limits, its head first."""
    yield ["replica", "traffic", "requests/s", *(way.name for way in LIMITS)]
    for profile in PROFILES.values():
        for traffic in TRAFFIC:
            for rate in traffic.rates:
                kept = [_kept(profile, traffic, rate, way) for way in LIMITS]
                yield [profile.name, traffic.name, f"{rate:g}", *(f"{all_of_them:.0%}" for all_of_them, *_ in kept)]


def shares() -> Iterator[list[str]]:
    """The table of shares for long requests: those of the short ones that keep their objectives, and of the long."""
    yield ["replica", "traffic", "requests/s", *(f"{way.name} for long ones" for way in SHARES)]
    for profile in PROFILES.values():
        for traffic in TRAFFIC:
            for rate in traffic.rates:
                kept = [_kept(profile, traffic, rate, way) for way in SHARES]
                cells = [" + ".join("–" if part is None else f"{part:.0%}" for part in parts) for _, *parts in kept]
                yield [profile.name, traffic.name, f"{rate:g}", *cells]


def _kept(profile: Profile, traffic: Traffic, rate: float, way: Way) -> tuple[float, float | None, float | None]:
    """Of all requests, of the short and of the long ones: the share that keeps its objectives."""
    good, come = dict.fromkeys(RequestClass, 0), dict.fromkeys(RequestClass, 0)
    for seed in SEEDS:
        for request, is_good in _play(profile, traffic, rate, way, seed):
            kind = _class(request)
            come[kind] += 1
            good[kind] += is_good
    by_class = (good[kind] / come[kind] if come[kind] else None for kind in RequestClass)
    short, long = by_class
    return sum(good.values()) / sum(come.values()), short, long


def _play(profile: Profile, traffic: Traffic, rate: float, way: Way, seed: int) -> Iterator[tuple[Request, bool]]:
    """Every request, and whether it kept its objectives. One that waits for too long is told so and is lost."""
    settings = GateSettings.model_validate({"longShare": way.long_share, "ttftSlo": TTFT_S, "itlSlo": TPOT_S})
    admission: Admission[Request] = Admission(settings)
    admission.limit = way.limit(settings)
    engine = Engine(profile, seed=seed)
    coming = deque(arrivals(constant(rate), PLAYED_S, mix=traffic.mix, seed=seed))
    waiting: deque[Request] = deque()
    begun: dict[int, float] = {}
    now = 0.0
    while coming or waiting or engine.outstanding:
        now += STEP_S
        for event in engine.advance(now):
            if isinstance(event, Finished):
                request = event.request
                admission.limit.finished(event.time, event.tpot_s)
                admission.leave(_class(request))
                yield request, event.first_token - request.arrival_s <= TTFT_S and event.tpot_s <= TPOT_S
            else:
                admission.limit.first_token(event.time, event.time - begun[id(event.request)])
        while coming and coming[0].arrival_s <= now:
            waiting.append(request := coming.popleft())
            admission.enter(_class(request), request)
        for request in admission.admit(now):
            begun[id(request)] = now
            engine.submit(request, now)
        while waiting and (id(waiting[0]) in begun or now - waiting[0].arrival_s > admission.longest_wait_s):
            if id(request := waiting.popleft()) not in begun:
                admission.withdraw(_class(request), request)
                yield request, False


def _class(request: Request) -> RequestClass:
    return RequestClass.LONG if request.prompt_tokens >= LONG_FROM else RequestClass.SHORT
