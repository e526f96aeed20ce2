"""Learning what one replica carries, from the replicas themselves.

Nothing is configured and nothing calibrated. How many requests can run in a replica is seen where its KV cache or its
batch slots fill up, or where the latency that its own histograms tell would reach its objective. How fast it then
works is learned from what its busy seconds go to (`TimeBudget`), prompts, prefix-cache hits and hardware alike, since
all of them show in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from scaler.policy.counting import number
from scaler.policy.line import Line
from scaler.policy.observation import Latency, Load, Observation
from scaler.policy.parsing import MOST
from scaler.policy.settings import PolicySettings
from scaler.policy.time_budget import TimeBudget

_FULL_S, _LOWER_S = 5.0, 30.0
"""How long a replica must run one and the same number while requests wait for that to be its slots: the highest number
seen so far, or a lower one. A queue behind long prompts or a full KV cache makes the number move."""
TARGET_USE = 0.9
"""Share of its slots and KV cache that a replica should use: the rest takes what arrives between two decisions."""
_ENOUGH_KV = 0.05
"""Use of the KV cache from which on the requests that run tell how many would fill it."""
_AVERAGING = 0.05
"""Weight of the newest estimate of that room: contexts grow while requests run."""
_ENOUGH_RUNNING = 0.05
"""Requests running in a replica below which its latencies are those of moments, not of a load."""
_BUSY = 0.3
"""Share of its slots or KV cache in use from which on a fleet tells how evenly it is loaded: few requests never are."""
_ENOUGH_S, _ENOUGH_REQUESTS = 30.0, 10.0
"""Seconds under load and finished requests from which on speed and length are believed: first ones are beginnings."""
_MEMORY_S = 1800.0
"""Seconds under load after which what was learned of speed weighs 1/e: a new mix of requests counts in minutes."""
_LENGTH_MEMORY_S = 600.0
_LEAST_S = 1e-6
"""No request runs for less."""
_LONGEST_TICK_S = 5.0
"""No single observation stands for more seconds than this."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What replicas of this target were seen to carry, in requests a replica."""

    carried: float = 0.0
    """The most that ran in one replica."""
    slots: float | None = None
    """What runs in a replica while others wait and the number does not move. None until one was seen full."""
    room: float | None = None
    """What would fill a replica's KV cache, going by those that run. None until the cache was seen in use."""
    full: float = 0.0
    full_since: float | None = None
    """What runs in the replicas where others wait, and since when this number has stood."""

    time: float | None = None
    """Of the last observation."""
    running: float | None = None
    """Requests running in a replica, averaged over half the look-back, which latencies are from."""
    waiting: float | None = None
    """Requests that waited at the last observation."""
    evenness: float | None = None
    """Requests running in a replica, mean ÷ most: how evenly they are spread, over about the last ten minutes."""
    tokens: float = 0.0
    prompt_tokens: float = 0.0
    requests: float = 0.0
    finished: float = 0.0
    """Generated and prompt tokens, and requests that brought them, of about the last ten minutes, fading."""
    budget: TimeBudget = field(default_factory=TimeBudget)
    itl: Line = field(default_factory=Line)
    e2e: Line = field(default_factory=Line)
    """The objective's percentile of these latencies, over requests running in a replica."""

    def after_gap(self) -> Capacity:
        """Return what stays true when nothing was seen for long."""
        return replace(self, full_since=None, time=None, running=None, waiting=None)

    def pace(self) -> tuple[float, float] | None:
        """Return seconds per generated token of a request, prompt included: alone, and more for each one beside it."""
        return self.budget.pace(self.prompt_tokens / self.tokens) if self.tokens else None


@dataclass(frozen=True, slots=True)
class Service:
    """What a replica gives when it runs as much as it can within the objectives."""

    running: float
    """Requests that run in it."""
    why: str
    """What bounds them."""
    request_s: float
    """How long a request runs then."""

    @property
    def rate(self) -> float:
        """Requests per second (Little's law)."""
        return self.running / self.request_s


def learn(settings: PolicySettings, capacity: Capacity, observation: Observation) -> Capacity:
    """Return what is known of a replica's capacity after this observation. From absurd values nothing is learned."""
    load = observation.load
    counts = (load.running, load.most_running, load.full_running)
    rates = (load.arrival_rate, load.completion_rate, load.generation_token_rate, load.prompt_token_rate)
    if any(value is not None and value > MOST for value in (*counts, *rates)):
        return replace(capacity, time=observation.time)
    return _speed(settings, _limits(capacity, observation), observation)


def _limits(capacity: Capacity, observation: Observation) -> Capacity:
    load, time = observation.load, observation.time
    carried, slots, room = max(capacity.carried, load.most_running or 0.0), capacity.slots, capacity.room
    if load.running and load.known and load.kv_cache_usage is not None and load.kv_cache_usage >= _ENOUGH_KV:
        estimate = load.running / load.known / load.kv_cache_usage
        room = _averaged(room, estimate, _AVERAGING)
    full, since = capacity.full, capacity.full_since
    if load.full_running is None:
        since = None
    elif since is None or abs(load.full_running - full) > max(0.5, 0.01 * full):
        full, since = load.full_running, time
    elif time - since >= (_FULL_S if full >= 0.98 * carried else _LOWER_S):
        slots = carried = max(1.0, full)
    return replace(capacity, carried=carried, slots=slots, room=room, full=full, full_since=since)


def _speed(settings: PolicySettings, capacity: Capacity, observation: Observation) -> Capacity:
    load, time = observation.load, observation.time
    passed = 0.0 if capacity.time is None else min(_LONGEST_TICK_S, max(0.0, time - capacity.time))
    if not load.known or load.running is None or not load.generation_token_rate:
        return replace(capacity, time=time, waiting=load.waiting)
    running = _averaged(capacity.running, load.running / load.known, passed / (settings.look_back_period_s / 2))
    seen: dict[str, Any] = {"time": time, "running": running, "evenness": _evenness(settings, capacity, load, passed)}
    seen |= _lengths(capacity, load, passed)
    if running < _ENOUGH_RUNNING or passed == 0:
        return replace(capacity, **seen)

    def with_point(line: Line, latency: float | None) -> Line:
        if latency is None or latency > MOST:
            return line
        return line.add(running, latency, weight=passed, memory=_MEMORY_S)

    queued = load.waiting is None or load.waiting > load.known
    tokens, prompt_tokens = load.generation_token_rate / load.known, (load.prompt_token_rate or 0.0) / load.known
    return replace(
        capacity,
        **seen,
        budget=capacity.budget.add(tokens / running, tokens, prompt_tokens, seconds=passed, memory=_MEMORY_S),
        itl=with_point(capacity.itl, _quantile(settings, load, "tpot")),
        e2e=capacity.e2e if queued else with_point(capacity.e2e, _quantile(settings, load, "e2e")),
    )


def _lengths(capacity: Capacity, load: Load, passed: float) -> dict[str, Any]:
    """Count tokens, and the requests that they belong to: these fields of the capacity, as they are now."""
    rates = [rate for rate in (load.arrival_rate, load.completion_rate) if rate is not None]
    # Those that run have been generated half, so requests count half when they begin and half when they end.
    requests = passed * math.fsum(rates) / len(rates) if rates else 0.0
    if load.arrival_rate is not None and load.waiting is not None and capacity.waiting is not None:
        requests -= (load.waiting - capacity.waiting) / 2  # those that came only to wait have not begun
    kept = math.exp(-passed / _LENGTH_MEMORY_S)
    return {
        "waiting": load.waiting,
        "tokens": kept * capacity.tokens + passed * (load.generation_token_rate or 0.0),
        "prompt_tokens": kept * capacity.prompt_tokens + passed * (load.prompt_token_rate or 0.0),
        "requests": max(0.0, kept * capacity.requests + requests),
        "finished": kept * capacity.finished + passed * (rates[-1] if rates else 0.0),
    }


def _evenness(settings: PolicySettings, capacity: Capacity, load: Load, passed: float) -> float | None:
    fills = [size for size in (settings.max_num_seqs or capacity.slots, capacity.room) if size is not None]
    if not load.known or not load.running or not load.most_running or not fills:
        return capacity.evenness
    each = load.running / load.known
    if each < _BUSY * min(fills):
        return capacity.evenness
    newest = 1 - math.exp(-passed / _LENGTH_MEMORY_S)
    return _averaged(capacity.evenness, each / load.most_running, newest)


def _averaged(before: float | None, now: float, weight: float) -> float:
    """Return the exponential moving average; it begins with the first value. A weight above 1 counts as 1."""
    return now if before is None else before + min(1.0, weight) * (now - before)


def _quantile(settings: PolicySettings, load: Load, name: str) -> float | None:
    latency: Latency | None = load.latency.get(name)
    return None if latency is None else float(getattr(latency, f"p{settings.percentile}"))


def service(settings: PolicySettings, capacity: Capacity) -> Service | None:
    """Return what a replica gives within the objectives; None while its speed or all that bounds it is unknown."""
    pace = capacity.pace()
    bounds = _bounds(settings, capacity, pace)
    enough = capacity.budget.seconds >= _ENOUGH_S and capacity.finished >= _ENOUGH_REQUESTS and capacity.requests > 0
    if pace is None or not bounds or not enough:
        return None
    running, why = min(bounds)
    running = max(1.0, running)
    request_s = capacity.tokens / capacity.requests * (pace[0] + pace[1] * running)
    return Service(running, why, request_s) if _LEAST_S < request_s < MOST else None


def _bounds(settings: PolicySettings, capacity: Capacity, pace: tuple[float, float] | None) -> list[tuple[float, str]]:
    """Return what each resource and objective allows to run in a replica. One that idle replicas miss says nothing."""
    bounds = _sizes(settings, capacity)
    for key, fit, objective in (
        ("itlSlo", capacity.itl.fit() or pace, settings.itl_slo_s),
        ("e2eSlo", capacity.e2e.fit(), settings.e2e_slo_s),
    ):
        if objective is None or fit is None:
            continue
        idle, slope = fit
        if slope > 0 and idle < TARGET_USE * objective:
            bounds.append(((objective - idle) / slope, f"{key} {number(objective)}s"))
    return bounds


def _sizes(settings: PolicySettings, capacity: Capacity) -> list[tuple[float, str]]:
    slots = settings.max_num_seqs or capacity.slots
    use = TARGET_USE * (1.0 if capacity.evenness is None else capacity.evenness)  # the fullest replica queues first
    sizes = []
    if slots is not None:
        sizes.append((use * slots, f"{use:.0%} of its {number(slots)} slots"))
    if capacity.room is not None:
        sizes.append((use * capacity.room, f"{use:.0%} of the {number(capacity.room)} its KV cache holds"))
    return sizes


def target_ongoing(settings: PolicySettings, capacity: Capacity) -> tuple[float, str]:
    """Return the ongoing requests that one replica should have, at least 1, and what says so.

    Until a replica was seen full, only what one carried without a queue is known to be good; and a full KV cache
    stops a replica as surely as full slots.
    """
    carried = (capacity.carried, "the most that one carried so far")
    sizes = _sizes(settings, capacity)
    known = sizes if settings.max_num_seqs or capacity.slots is not None else [carried, *sizes]
    target, source = min(known)
    return max(1.0, target), source
