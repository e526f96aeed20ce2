"""A clairvoyant: knows the whole traffic, the engine and every pod's luck, but pays for start-ups like everybody.

No one's rule, but a bound to compare with. It works out how many replicas the traffic needs in each second (`need`),
holds them over dips that are shorter than a start, and lets replicas come together where one alone would be flooded.
Of several such plans, with more or less reserve, it plays each on the very run that is to come, the cheapest first,
and takes the first that serves 99 % of the feasible requests within their objectives, or as many as the dearest does.
So it is near the least that the traffic can be served with, but no proof of it: a plan with other moves may be cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from inference.simulated import Outcome
from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals import need
from scaler.backtest.rivals.rival import Direct
from scaler.backtest.scores import Requests, met
from scaler.backtest.work import Floats, columns, feasible, prefill_s


@dataclass(frozen=True, slots=True)
class Settings:
    """How it plans."""

    goal: float = 0.99
    """Share of the feasible requests that a plan must serve in time."""
    near: float = 0.002
    """Where even the dearest plan misses the goal, the cheapest that comes so near to it will do."""
    uses: tuple[float, ...] = (1.0, 0.95, 0.9, 0.8)
    """Shares of a replica's room that plans count on."""
    shapes: tuple[tuple[float, int], ...] = ((120.0, 30), (120.0, 60), (20.0, 60))
    """Seconds over which plans average the need, and seconds that replicas come earlier than it: into a lower load."""
    margin_s: float = 15.0
    """How much earlier than the median start-up it asks: some pods take longer."""


_RATE_S = 60
"""Over how long arrivals are averaged, for the flood on new replicas."""


class Planned(Direct[Settings]):
    """Moves as a plan says."""

    sync_s = 5.0
    pushes = True

    def __init__(self, setup: Setup, settings: Settings, name: str, plan: Floats) -> None:
        super().__init__(setup, settings, name)
        self.plan = plan
        """Replicas that should be ready, for each second of the run."""
        self._ahead_s = ahead_s(setup, settings)

    def want(self, seen: Seen) -> float:
        """Return the most that is planned from now until a pod asked for now is ready."""
        return float(self.plan[int(seen.time) : int(seen.time + self._ahead_s) + 1].max(initial=0.0))


class Oracle(Planned):
    """Every replica just in time."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "oracle") -> None:
        super().__init__(setup, settings, name, _best(setup, settings, name))


def ahead_s(setup: Setup, settings: Settings) -> float:
    """Return how long before a replica should be ready it is asked for."""
    return setup.start_up_s + settings.margin_s


def plans(setup: Setup, settings: Settings) -> list[Floats]:
    """Return plans, the one with the fewest replicas first."""
    made = []
    for use, (smoothing_s, early_s) in product(settings.uses, settings.shapes):
        plan = np.minimum(np.ceil(need.replicas(setup, use, smoothing_s) - 1e-9), setup.maximum)
        plan = _held(_highest(plan, early_s), int(ahead_s(setup, settings)))
        made.append(_together(plan, setup, use))
    return sorted(made, key=lambda plan: float(np.maximum(plan, setup.minimum).sum()))


def _best(setup: Setup, settings: Settings, name: str) -> Floats:
    """Return the cheapest plan that reaches the goal when it is played, or comes as near to it as the dearest does."""
    *cheaper, dearest = plans(setup, settings)
    rehearse = setup.rehearse
    if rehearse is None:
        return cheaper[0]

    def share(plan: Floats) -> float:
        return _attained(setup, rehearse(partial(Planned, settings=settings, name=name, plan=plan)))

    enough = min(settings.goal, share(dearest) - settings.near)
    return next((plan for plan in cheaper if share(plan) >= enough), dearest)


def _attained(setup: Setup, outcomes: Sequence[Outcome]) -> float:
    """Return the share of the feasible requests that met both objectives; 1 of none."""
    slo = setup.ttft_slo_s, setup.tpot_slo_s
    possible = feasible(setup.profile, [outcome.request for outcome in outcomes], *slo)
    ttft, tpot = met(Requests.of(outcomes), *slo)
    return float((ttft & tpot)[possible].mean()) if possible.any() else 1.0


def _held(plan: Floats, length: int) -> Floats:
    """Return the plan without dips shorter than `length` seconds: who goes then would have to come back at once."""
    ahead = _highest(plan, length)
    return -_highest(-ahead[::-1], length)[::-1]


def _highest(values: Floats, length: int) -> Floats:
    """Return for each second the highest value from then on for `length` more seconds."""
    padded = np.concatenate([values, np.full(length, values[-1])])
    highest: Floats = np.lib.stride_tricks.sliding_window_view(padded, length + 1).max(axis=1)
    return highest


def _together(plan: Floats, setup: Setup, use: float) -> Floats:
    """Return the plan with more replicas in a step where fewer would be flooded.

    New replicas are the emptiest, so the router gives them all arrivals, λ, until they hold L requests like the others.
    With k of them each gets L of them within k · L / λ seconds, but prefills only one in p seconds: its queue then is
    L · (p − k / λ) seconds long, which the TTFT objective must allow.
    """
    if not setup.requests:
        return plan
    arrival, prompt, cached, output = columns(setup.requests)
    prefill = float(prefill_s(setup.profile, prompt - cached, cached).mean())
    life = float(output.mean()) * need.token_s(setup, use)
    counts = np.bincount(arrival.astype(int), minlength=len(plan))[: len(plan)]
    rate = np.convolve(counts, np.full(_RATE_S, 1 / _RATE_S), "same")[: len(plan)]
    plan = plan.copy()
    for second in np.flatnonzero(np.diff(plan) > 0) + 1:
        before, after, arriving = plan[second - 1], plan[second], max(rate[second], 1e-9)
        needed = after
        while needed < setup.maximum:
            each = arriving * life / needed
            if each * (prefill - (needed - before) / arriving) <= setup.ttft_slo_s - prefill:
                break
            needed += 1
        if needed > after > before:
            lower = np.flatnonzero(plan[second:] < after)
            end = second + int(lower[0]) if len(lower) else len(plan)
            plan[second:end] = np.maximum(plan[second:end], needed)
    return plan
