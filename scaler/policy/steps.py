"""The steps of a decision, in order. Each is one rule: it may change the want, and then says so in one line.

A step's `rule` in an explanation is the name of its function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from scaler.policy import delays, trend
from scaler.policy.capacity import learn
from scaler.policy.decision import Step
from scaler.policy.observation import Observation
from scaler.policy.parsing import StepLimit
from scaler.policy.rule_values import rule_values
from scaler.policy.rules import Streak, advance
from scaler.policy.schedule import floor_at
from scaler.policy.settings import PolicySettings
from scaler.policy.signals import SIGNALS
from scaler.policy.state import State

_EPSILON = 1e-9
"""Rounding up must not make a replica out of the last bit of a floating-point number."""
_TREND_WINDOW_S = (30.0, 180.0)


@dataclass(slots=True)
class Draft:
    """The working paper of one decision. `want` passes from step to step; `base` is the last desired count."""

    settings: PolicySettings
    observation: Observation
    state: State
    base: int
    want: float
    demand: dict[str, float] = field(default_factory=dict)
    backlog: float = 0.0
    """The part of the want that is there only to work off what waits."""
    ignorant: list[str] = field(default_factory=list)
    """Signals that were asked for and could not be known."""
    burst: bool = False
    steps: list[Step] = field(default_factory=list)

    def say(self, rule: str, text: str) -> None:
        """Write down what the rule did."""
        self.steps.append(Step(rule, self.want, text))


def ceil(replicas: float) -> int:
    """Round up to whole replicas."""
    return math.ceil(replicas - _EPSILON)


def signals(draft: Draft) -> None:
    """Take the highest of what the signals and rules want; a pod that cannot be seen counts as fully used."""
    settings, observation, state = draft.settings, draft.observation, draft.state
    state.capacity = learn(state.capacity, observation)
    if observation.load.known == 0:
        draft.want = float(max(draft.base, observation.replicas.requested))
        draft.say("signals", "no ready pod was read: the count stays")
        return
    best = None
    for name, entry in SIGNALS.items():
        if not entry.asked(settings):
            continue
        demand = entry.demand(settings, state.capacity, observation)
        if demand is None:
            draft.ignorant.append(name)
            draft.say("signals", f"{name}: unknown")
            continue
        draft.demand[name] = demand.replicas
        draft.say("signals", f"{name}: {demand.replicas:.2f} replicas, {demand.text}")
        if best is None or demand.replicas > best.replicas:
            best = demand
    if best is not None:
        unknown = len(observation.load.unknown)
        draft.want, draft.backlog = best.replicas + unknown, best.backlog
        if unknown:
            draft.say("signals", f"{_pods(unknown)} unknown: counted as fully used")
    if settings.rules:
        by_rules = _rules(draft)
        draft.want = by_rules if best is None else max(draft.want, by_rules)


def _rules(draft: Draft) -> float:
    """Move from the present count by the rules that fire; what is on the way counts towards what a rule adds.

    An upward rule that fires outweighs every downward one.
    """
    settings, observation, state = draft.settings, draft.observation, draft.state
    values = rule_values(settings, state.capacity, observation)
    pending = _pending(draft)
    streaks = state.streaks or (Streak(),) * len(settings.rules)
    base = _without_headroom(draft) if state.ruled is None else state.ruled
    advanced, up, down = [], base, base
    for rule, streak in zip(settings.rules, streaks, strict=True):
        after, fires = advance(rule, streak, values, observation.time)
        advanced.append(after)
        if not fires:
            continue
        size = rule.size(values, base)
        if rule.up:
            up = max(up, base + size - pending)
        else:
            down = min(down, base - size)
        credit = f" ({pending} of them on the way)" if rule.up and pending else ""
        draft.say("signals", f"rule {rule.text!r} fires: {'+' if rule.up else '-'}{size}{credit}")
    state.streaks = tuple(advanced)
    limits = observation.limits
    state.ruled = max(limits.minimum, min(limits.maximum, up if up > base else down))
    draft.demand["rules"] = float(state.ruled)
    return float(state.ruled)


def _without_headroom(draft: Draft) -> int:
    """Return the count that, with headroom, makes the present one."""
    extra = draft.settings.headroom
    base = draft.base / (1 + extra.value / 100) if extra.percent else draft.base - extra.value
    return max(0, ceil(base))


def burst(draft: Draft) -> None:
    """See a sudden rise: then nothing delays, and the count is at least multiplied by the upscaling factor."""
    state, now, ready = draft.state, draft.observation.time, max(1, draft.observation.replicas.ready)
    last, last_time, threshold = state.demand, state.time, draft.settings.burst_threshold
    state.demand = draft.want
    if threshold is None or last is None or last_time is None or now <= last_time:
        return
    rise = (draft.want - last) / (now - last_time)
    if rise >= threshold * ready and draft.want > draft.base:
        draft.burst = True
        draft.want = max(draft.want, ready * draft.settings.upscaling_factor)
        draft.say("burst", f"demand rises by {rise:.3g} replicas/s, {rise / ready:.0%} of the ready ones: no delay")


def smooth(draft: Draft) -> None:
    """Average exponentially over the demand: x = α · now + (1 − α) · x before."""
    state, settings = draft.state, draft.settings
    before, alpha = state.smoothed, settings.smoothing_factor
    if before is None or draft.burst or alpha == 1.0:
        state.smoothed = draft.want
        return
    ticks = 1.0 if state.time is None else (draft.observation.time - state.time) / settings.metrics_interval_s
    weight = 1 - (1 - alpha) ** max(0.0, ticks)  # a missed tick weighs as much as two that were not missed
    unsmoothed, draft.want = draft.want, weight * draft.want + (1 - weight) * before
    state.smoothed = draft.want
    if ceil(unsmoothed) != ceil(draft.want):
        draft.say("smooth", f"{unsmoothed:.2f} → {draft.want:.2f} with smoothing factor {alpha:g}")


def look_ahead(draft: Draft) -> None:
    """Carry a rising demand on over the start-up time: what is asked for now serves only then.

    The queue is left out: it grows with time even under a steady overload, and credit takes care of it.
    """
    start_up, fixed = draft.observation.start_up, draft.settings.look_ahead_s
    horizon = fixed if fixed is not None else start_up.median if start_up else 0.0
    if horizon <= 0 or draft.observation.load.unknown:
        return
    window = min(max(horizon, _TREND_WINDOW_S[0]), _TREND_WINDOW_S[1])
    level = max(0.0, draft.want - draft.backlog)
    draft.state.trend = trend.append(draft.state.trend, draft.observation.time, level, window)
    ahead = trend.rising_slope(draft.state.trend) * horizon
    if ahead > 0:
        before, draft.want = draft.want, draft.want + ahead
        if ceil(before) != ceil(draft.want):
            draft.say("look_ahead", f"rising: {ahead:.2g} more in the {horizon:.3g}s that a start takes")


def factors(draft: Draft) -> None:
    """Multiply the distance to the want by the upscaling or downscaling factor. Source: Ray Serve.

    A fall that a factor would swallow whole still takes one replica.
    """
    ready = draft.observation.replicas.ready
    delta = draft.want - ready
    factor = draft.settings.upscaling_factor if delta > 0 else draft.settings.downscaling_factor
    if ready == 0 or factor == 1.0 or draft.burst:
        return
    before, draft.want = draft.want, ready + factor * delta
    if ceil(before) < ready and ceil(draft.want) == ready:
        draft.want = float(ready - 1)
    draft.say("factors", f"{before:.2f} → {draft.want:.2f}: {factor:g} × the distance from {ready} ready")


def headroom(draft: Draft) -> None:
    """Keep replicas beyond demand, as long as there is any."""
    extra = draft.settings.headroom.of(draft.want)
    if extra > 0 and draft.want > 0:
        draft.want += extra
        draft.say("headroom", f"{draft.settings.headroom} more as headroom")


def delay(draft: Draft) -> None:
    """Act on a want only when it held for the upscale or the downscale delay."""
    draft.want = float(want := ceil(draft.want))
    if draft.settings.delay_mode == "consecutive":
        _consecutive(draft, want)
    else:
        _stabilize(draft, want)


def _stabilize(draft: Draft, want: int) -> None:
    """The smallest change wanted within the window counts. Source: the HPA's stabilization windows."""
    state, settings, now, base = draft.state, draft.settings, draft.observation.time, draft.base
    if not state.down_window:  # before the first tick the count was wanted as it was
        state.up_window = state.down_window = ((now, base),)
    state.up_window = delays.least(state.up_window, now, want, settings.upscale_delay_s)
    state.down_window = delays.highest(state.down_window, now, want, settings.downscale_delay_s)
    up, down = state.up_window[0][1], state.down_window[0][1]
    if want > base and not draft.burst and base > 0 and up < want:
        draft.want = float(max(base, up))
        draft.say(
            "delay",
            f"{want} not yet: {ceil(draft.want)} held for the upscale delay of {settings.upscale_delay_s:g}s",
        )
    elif want < base and down > want:
        draft.want = float(min(base, down))
        draft.say(
            "delay",
            f"{want} not yet: {down} was wanted within the downscale delay of {settings.downscale_delay_s:g}s",
        )


def _consecutive(draft: Draft, want: int) -> None:
    """The direction must hold without a break, then the latest want counts. Source: Ray Serve's delays."""
    state, settings, now, base = draft.state, draft.settings, draft.observation.time, draft.base
    direction = (want > base) - (want < base)
    if direction != state.direction:
        state.direction, state.direction_since = direction, now
    if direction == 0 or draft.burst or (base == 0 and direction > 0):
        return
    if direction < 0 and base > 1:
        want = max(1, want)  # to zero only from one
        draft.want = float(want)
    length = settings.upscale_delay_s if direction > 0 else settings.downscale_delay_s
    held = now - state.direction_since
    if held + _EPSILON >= length:
        state.direction = 0
        return
    draft.want = float(base)
    which = "upscale" if direction > 0 else "downscale"
    draft.say("delay", f"{want} not yet: wanted for {held:.3g}s of the {which} delay of {length:g}s")


def step_limits(draft: Draft) -> None:
    """Move no further in a period than the limits allow."""
    for limit, sign in ((draft.settings.upscale_limit, 1), (draft.settings.downscale_limit, -1)):
        if limit is not None and sign * (draft.want - draft.base) > 0:
            allowed = _allowed(limit, sign, draft)
            if sign * (draft.want - allowed) > 0:
                before, draft.want = draft.want, float(allowed)
                which = "upscale" if sign > 0 else "downscale"
                draft.say("step_limits", f"{before:g} → {allowed}: {which} limit {limit}")


def _allowed(limit: StepLimit, sign: int, draft: Draft) -> int:
    """Return the furthest count, as the HPA counts: from where the count stood when the period began."""
    since = draft.observation.time - limit.period_s
    moved = sum(delta for time, delta in draft.state.changes if time > since and delta * sign > 0)
    start = draft.base - moved
    step = limit.amount.of(start)
    whole = max(1, math.ceil(step) if sign > 0 else math.floor(step))
    return start + whole if sign > 0 else max(0, start - whole)


def credit(draft: Draft) -> None:
    """Do not ask again for a queue that pods on the way will take."""
    pending = _pending(draft)
    if not draft.settings.starting_credit or draft.settings.rules or pending == 0 or draft.want <= draft.base:
        return
    credited = min(float(pending), draft.backlog)
    before, draft.want = draft.want, float(max(draft.base, ceil(draft.want - credited)))
    if draft.want < before:
        draft.say("credit", f"{before:g} → {draft.want:g}: {_pods(pending)} on the way will take the queue")


def hold(draft: Draft) -> None:
    """Never go down from ignorance, nor while requests queue."""
    load = draft.observation.load
    if draft.want >= draft.base:
        return
    why = ""
    if load.unknown:
        why = f"{_pods(len(load.unknown))} unknown"
    elif draft.ignorant:
        why = f"{', '.join(draft.ignorant)} unknown"
    elif load.known and load.waiting is not None and load.waiting >= max(1, load.known):
        why = f"{load.waiting:.4g} requests wait"
    if why:
        draft.want = float(draft.base)
        draft.say("hold", f"stays at {draft.base}: {why}")


def bounds(draft: Draft) -> None:
    """Stay within minimum and maximum, and above the schedule's floor."""
    limits = draft.observation.limits
    window = floor_at(draft.settings.min_replicas_schedule, draft.observation.utc)
    if window is not None and draft.want < window.floor:
        draft.want = float(window.floor)
        draft.say("bounds", f"raised to {window.floor} by schedule {window.text!r}")
    if draft.want < limits.minimum:
        draft.want = float(limits.minimum)
        draft.say("bounds", f"raised to the minimum of {limits.minimum}")
    elif draft.want > limits.maximum:
        draft.want = float(limits.maximum)
        draft.say("bounds", f"cut to the maximum of {limits.maximum}")


STEPS: tuple[Callable[[Draft], None], ...] = (
    signals,
    burst,
    smooth,
    look_ahead,
    factors,
    headroom,
    delay,
    step_limits,
    credit,
    hold,
    bounds,
)


def _pending(draft: Draft) -> int:
    """Replicas on the way: those that start, and those that were asked for and are not even there yet."""
    replicas = draft.observation.replicas
    return max(0, replicas.starting + replicas.unschedulable, draft.base - replicas.ready)


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
