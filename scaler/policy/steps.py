"""The steps of a decision, in order. Each is one rule: it may change the want, and then says so in one line.

A step's `rule` in an explanation is the name of its function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from scaler.policy import delays, forecast
from scaler.policy.capacity import learn
from scaler.policy.counting import MOST, ceil, number, pods
from scaler.policy.decision import Step
from scaler.policy.observation import Observation
from scaler.policy.parsing import StepLimit
from scaler.policy.rule_values import rule_values
from scaler.policy.rules import Rule, Streak, Values, advance
from scaler.policy.schedule import Window
from scaler.policy.settings import PolicySettings
from scaler.policy.signals import SIGNALS, Demand
from scaler.policy.signals.ongoing import is_default
from scaler.policy.starts import cold_s, may_wait_for_node, node_bound_s, waits_for_node, warm_s
from scaler.policy.state import State
from scaler.quoting import quoted

_TIME_EPSILON_S = 1e-6
"""A delay must not take a tick more for the last bit of a difference between two times."""
HPA_S = 10.0
"""What delivery adds to a start: half a sync of the HPA, and a tick."""
_SURE = 0.1
"""A forecast of less must leave so much room in the smaller count, or chance alone would move it to and fro."""
_CHANCE = 3.0
"""Standard deviations by which a jump of arrivals stands out of chance: those of a count (Poisson), or those seen."""
_WINDOW_S = (10.0, 60.0)
"""An excess of load hurts when it lasts about as long as a request does, within these bounds."""


@dataclass(slots=True)
class Draft:
    """The working paper of one decision. `want` passes from step to step; `base` is the last desired count."""

    settings: PolicySettings
    observation: Observation
    state: State
    base: int
    want: float
    floor: Window | None = None
    """The open window of the schedule."""
    demand: dict[str, float] = field(default_factory=dict)
    best: Demand | None = None
    """The signal's answer that counts; None where only rules or nothing spoke."""
    level: float = 0.0
    """The rest of it, as it was before any smoothing."""
    blind: bool = False
    """Nothing says what the load needs: the want is the count as it is, and no demand to shape."""
    ruled: float | None = None
    """What `State.ruled` was before this decision."""
    ignorant: list[str] = field(default_factory=list)
    """Signals that were asked for and could not be known."""
    burst: bool = False
    foreseen: bool = False
    cold: forecast.Forecast | None = None
    """What `foresee_cold` found, once it has looked."""
    falls_in_s: float | None = None
    """How soon the delay lets the count fall; None while no fall is wanted, or something else keeps it."""
    claim: int = 0
    """The count that would be wanted without a budget."""
    blocked: str = ""
    """Why more replicas would find no node, empty where they would."""
    steps: list[Step] = field(default_factory=list)

    @property
    def backlog(self) -> float:
        """The part of the want that is there only to work off what waits."""
        return self.best.backlog if self.best else 0.0

    def say(self, rule: str, text: str) -> None:
        """Write down what the rule did."""
        self.steps.append(Step(rule, self.want, text))


def signals(draft: Draft) -> None:
    """Take the highest of what the signals and rules want; a pod that cannot be seen counts as fully used."""
    settings, observation, state = draft.settings, draft.observation, draft.state
    load = observation.load
    state.capacity = learn(settings, state.capacity, observation)
    if not load.known:
        _fired(draft, {})
        _stay(draft, max(draft.base, observation.replicas.requested))
        draft.say("signals", "no ready pod was read: the count stays")
        return
    best = None
    for name, entry in SIGNALS.items():
        if not entry.asked(settings):
            continue
        demand = entry.demand(settings, state.capacity, observation)
        if demand is None or not 0 <= demand.replicas <= MOST:
            draft.ignorant.append(name)
            draft.say("signals", f"{name}: unknown" if demand is None else f"{name}: absurd, {demand.text}")
            continue
        draft.demand[name] = demand.replicas
        if best is None or demand.replicas > best.replicas:
            best, draft.want = demand, demand.replicas
        draft.say("signals", f"{name}: {demand.replicas:.2f} replicas, {demand.text}")
    if best is not None:
        draft.best = best
        if load.unknown:
            draft.want += min(len(load.unknown), max(0, draft.base - load.known))
            draft.say("signals", f"{pods(len(load.unknown))} unknown: counted as fully used, up to {draft.base} in all")
    if settings.rules:
        _rules(draft, alone=best is None)
    elif best is None:
        _stay(draft, draft.base)
        draft.say("signals", "no signal is known: the count stays")
    draft.level = max(0.0, draft.want - draft.backlog)


def _stay(draft: Draft, count: int) -> None:
    """Keep the count, since nothing says what the load needs."""
    draft.blind, draft.want, draft.state.demand = True, float(count), None


def _rules(draft: Draft, alone: bool) -> None:
    """Move from the present count by the rules that fire. An upward rule outweighs every downward one.

    What is on the way counts towards what a rule adds, and what is still there although it was taken away
    towards what a rule takes.
    """
    settings, observation, state = draft.settings, draft.observation, draft.state
    values = rule_values(settings, state.capacity, observation)
    base = _without_headroom(draft) if state.ruled is None else state.ruled
    coming = _pending(draft)
    going = max(0, observation.replicas.ready - ceil(base + settings.headroom.of(base)))
    up: list[int] = []
    down, texts = [0], []
    for rule in _fired(draft, values):
        size = rule.size(values, base)
        credited = min(size, coming if rule.up else going)
        (up if rule.up else down).append(size - credited)
        credit = f" ({credited} of them on the way{'' if rule.up else ' out'})" if credited else ""
        texts.append(f"rule {quoted(rule.text)} fires: {'+' if rule.up else '-'}{size}{credit}")
    limits = observation.limits
    least = min(limits.maximum, max(limits.minimum, draft.floor.floor if draft.floor else 0))
    moved = (base if alone else max(base, draft.want)) + max(up) if up else base - max(down)
    draft.ruled, state.ruled = base, max(least, min(limits.maximum, moved))
    draft.demand["rules"] = float(state.ruled)
    draft.want = float(state.ruled if alone else max(draft.want, state.ruled))
    for text in texts or ["no rule fires"]:
        draft.say("signals", text)


def _fired(draft: Draft, values: Values) -> list[Rule]:
    """Carry the streaks of all rules on and return the rules that fire; a downward one waits for unknown pods."""
    streaks, fired = {}, []
    for rule in draft.settings.rules:
        streak = draft.state.streaks.get(rule.text, Streak())
        may_fire = rule.up or not draft.observation.load.unknown
        streaks[rule.text], fires = advance(rule, streak, values, draft.observation.time, may_fire)
        if fires:
            fired.append(rule)
    draft.state.streaks = streaks
    return fired


def _without_headroom(draft: Draft) -> float:
    """Return what, with headroom, makes the present count."""
    extra = draft.settings.headroom
    base = draft.base / (1 + extra.value / 100) if extra.percent else draft.base - extra.value
    return max(0.0, base)


def burst(draft: Draft) -> None:
    """See a sudden rise: then nothing delays, and the count is at least multiplied by the upscaling factor."""
    state, now, ready = draft.state, draft.observation.time, max(1, draft.observation.replicas.ready)
    last, last_time, threshold = state.demand, state.time, draft.settings.burst_threshold
    state.demand = draft.want
    if threshold is None or last is None or last_time is None or now <= last_time:
        return
    rise = (draft.want - last) / max(now - last_time, draft.settings.metrics_interval_s)
    if rise >= threshold * ready and draft.want > draft.base:
        draft.burst = True
        draft.want = max(draft.want, ready * draft.settings.upscaling_factor)
        draft.say("burst", f"demand rises by {number(rise)} replicas/s, {rise / ready:.0%} of the ready ones: no delay")


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
        draft.say("smooth", f"{number(unsmoothed)} → {number(draft.want)} with smoothing factor {alpha:g}")


def look_ahead(draft: Draft) -> None:
    """Provide for the load of one start-up time from now: what is asked for now serves only then.

    Where arrivals make the demand they are what is forecast, else the demand itself. The queue is left out: it grows
    with time even under a steady overload. A demand by a configured target is a promise for now, and a burst is load
    that no past has told of: then a forecast of less lowers nothing.
    """
    found, horizon = _ahead(draft)
    if found is None:
        return
    before, ahead = draft.want, found.value
    draft.want = ahead + draft.want - draft.level
    if draft.want < draft.base:
        draft.want = min(float(draft.base), draft.want * (1 + _SURE))
    if draft.burst or not is_default(draft.settings):
        draft.want = max(before, draft.want)
    if ceil(before) != ceil(draft.want):
        draft.say(
            "look_ahead",
            f"{number(before)} → {number(draft.want)}: {number(found.expected)} expected in {number(horizon)}s "
            f"({found.by}), {number(ahead - found.expected)} more for how wrong such forecasts were",
        )


def _ahead(draft: Draft) -> tuple[forecast.Forecast | None, float]:
    """Return the forecast that counts, and of how many seconds from now it is.

    Where the next replica waits for a node, it is for one node and one start from now, unless one start from now needs
    more: what falls only later is needed until then.
    """
    settings, observation, state = draft.settings, draft.observation, draft.state
    horizon = HPA_S + warm_s(observation.start_up) if settings.look_ahead_s is None else settings.look_ahead_s
    if horizon <= 0:
        return None, horizon
    state.record, found = foresee(draft, state.record, horizon)
    if settings.look_ahead_s is not None or not may_wait_for_node(observation):
        return found, horizon
    later = foresee_cold(draft)
    nodes_are_made_ahead = settings.warm_replicas == "auto" and not observation.replicas.unschedulable
    if later is None or nodes_are_made_ahead or not waits_for_node(observation):
        return found, horizon
    if found is not None and found.value >= later.value:
        return found, horizon
    return later, HPA_S + cold_s(observation.start_up)


def foresee(
    draft: Draft, record: forecast.Record, horizon_s: float
) -> tuple[forecast.Record, forecast.Forecast | None]:
    """Carry a record of the load on, and forecast the demand, in replicas, of `horizon_s` seconds from now.

    None where nothing can be said yet.
    """
    settings, observation, best = draft.settings, draft.observation, draft.best
    load, each, by_arrivals = draft.level, 1.0, False
    if best is not None and best.per_arrival_rate is not None and observation.load.arrival_rate is not None:
        load, each, by_arrivals = observation.load.arrival_rate, best.per_arrival_rate, True
    if not observation.load.unknown:
        record = forecast.follow(
            record,
            observation.time,
            load,
            arrivals=by_arrivals,
            horizon_s=horizon_s,
            window_s=min(_WINDOW_S[1], max(_WINDOW_S[0], (best and best.request_s) or 0.0)),
            allowed_excess=min(1.0, (1 - settings.percentile / 100) * settings.cost_weight),
        )
    elif record.arrivals != by_arrivals or record.begun is None or observation.time - record.begun > horizon_s:
        return record, None  # what all pods were to get one horizon ago tells no more what the unknown ones get
    if record.forecast is None:
        return record, None
    found = record.forecast
    if by_arrivals:  # a jump that stands out of chance need not wait until forecasters have averaged it in
        look_back = settings.look_back_period_s
        sure = load - _CHANCE * max(math.sqrt(load / look_back), forecast.scatter(record, look_back))
        found = max(found, forecast.Forecast(sure, sure, "arriving already"), key=lambda either: either.value)
    return record, forecast.Forecast(found.value * each, found.expected * each, found.by)


def foresee_cold(draft: Draft) -> forecast.Forecast | None:
    """Forecast the demand, in replicas, of one node and one start from now; once a tick, whoever asks."""
    if not draft.foreseen:
        horizon = HPA_S + cold_s(draft.observation.start_up)
        draft.state.cold_record, draft.cold = foresee(draft, draft.state.cold_record, horizon)
        draft.foreseen = True
    return draft.cold


def factors(draft: Draft) -> None:
    """Multiply the distance to the want by the upscaling or downscaling factor. Source: Ray Serve.

    A fall that a factor would swallow whole still takes one replica.
    """
    ready = draft.observation.replicas.ready
    delta = draft.want - ready
    factor = draft.settings.upscaling_factor if delta > 0 else draft.settings.downscaling_factor
    if ready == 0 or factor == 1.0 or draft.burst:
        return
    before, draft.want = draft.want, min(MOST, max(0.0, ready + factor * delta))
    if ceil(before) < ready and ceil(draft.want) == ready:
        draft.want = float(ready - 1)
    if ceil(before) != ceil(draft.want):
        draft.say(
            "factors", f"{number(before)} → {number(draft.want)}: {number(factor)} × the distance from {ready} ready"
        )


def headroom(draft: Draft) -> None:
    """Keep replicas beyond demand, as long as there is any."""
    extra = draft.settings.headroom.of(draft.want)
    if extra > 0 and draft.want > 0:
        draft.want += extra
        draft.say("headroom", f"{draft.settings.headroom} more as headroom")


def delay(draft: Draft) -> None:
    """Act on a want only when it held for the upscale or the downscale delay."""
    if draft.ignorant and draft.want < draft.base:  # for how long a fall is wanted counts from when all is known
        draft.state.up_window = draft.state.down_window = ((draft.observation.time, draft.base),)
        draft.state.direction = 0
        return
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
        kept = [time for time, wanted in state.down_window if wanted >= base]
        draft.falls_in_s = kept[-1] + settings.downscale_delay_s - now if kept else 0.0
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
    if held + _TIME_EPSILON_S >= length:
        state.direction = 0
        return
    draft.want = float(base)
    draft.falls_in_s = length - held if direction < 0 else None
    which = "upscale" if direction > 0 else "downscale"
    draft.say("delay", f"{want} not yet: wanted for {number(held)}s of the {which} delay of {length:g}s")


def step_limits(draft: Draft) -> None:
    """Move no further in a period than the limits allow."""
    for limit, sign in ((draft.settings.upscale_limit, 1), (draft.settings.downscale_limit, -1)):
        if limit is not None and sign * (draft.want - draft.base) > 0:
            allowed = _allowed(limit, sign, draft)
            if sign * (draft.want - allowed) > 0:
                before, draft.want = draft.want, float(allowed)
                which = "upscale" if sign > 0 else "downscale"
                draft.say("step_limits", f"{number(before)} → {allowed}: {which} limit {limit}")


def _allowed(limit: StepLimit, sign: int, draft: Draft) -> int:
    """Return the furthest count, as the HPA counts: from where the count stood when the period began."""
    since = draft.observation.time - limit.period_s
    moved = sum(delta for time, delta in draft.state.changes if time > since)
    start = draft.base - moved
    step = limit.amount.of(start)
    whole = max(1, math.ceil(step) if sign > 0 else math.floor(step))
    return max(draft.base, start + whole) if sign > 0 else min(draft.base, max(0, start - whole))


def credit(draft: Draft) -> None:
    """Do not ask again for a queue that pods on the way will take; a burst is new load, whatever is on the way."""
    pending = _pending(draft)
    if not draft.settings.starting_credit or draft.settings.rules or draft.burst or not pending:
        return
    if draft.want <= draft.base:
        return
    credited = min(float(pending), draft.backlog)
    before, draft.want = draft.want, float(max(draft.base, ceil(draft.want - credited)))
    if draft.want < before:
        draft.say("credit", f"{number(before)} → {number(draft.want)}: {pods(pending)} on the way will take the queue")


def blocked(draft: Draft) -> None:
    """Grow no further while pods have found no node for longer than one takes: more pods would not find one either.

    Those that wait stay asked for, so that they start by themselves once there is room; they are taken back only when
    nothing waits for them any more.
    """
    observation, state = draft.observation, draft.state
    replicas, waiting = observation.replicas, observation.load.waiting
    bound = draft.settings.max_node_provision_time_s
    bound = node_bound_s(observation.start_up) if bound is None else bound
    if not replicas.unschedulable or replicas.unschedulable_s < bound:
        return
    draft.blocked = (
        f"{pods(replicas.unschedulable)} found no node in {number(replicas.unschedulable_s)}s, where one may take "
        f"{number(bound)}s; lacking: {replicas.lacks or 'unknown'}"
    )
    most = max(draft.base, replicas.requested)
    if draft.want > most:
        draft.want = float(most)
        if state.ruled is not None and draft.ruled is not None:
            state.ruled = min(state.ruled, draft.ruled)  # else steps would pile up and be taken all at once
    elif draft.want < draft.base and waiting != 0:
        draft.want = float(draft.base)
    draft.say("blocked", f"no more than {most}: {draft.blocked}")


def hold(draft: Draft) -> None:
    """Never go down from ignorance, nor while requests queue."""
    load, state = draft.observation.load, draft.state
    if draft.want >= draft.base:
        return
    why = ""
    if load.unknown:
        why = f"{pods(len(load.unknown))} unknown"
    elif draft.ignorant:
        why = f"{', '.join(draft.ignorant)} unknown"
    elif load.known and load.waiting is not None and load.waiting >= max(1, load.known):
        why = f"{number(load.waiting)} requests wait"
    if why:
        draft.want = float(draft.base)
        if state.ruled is not None and draft.ruled is not None:
            state.ruled = max(state.ruled, draft.ruled)  # else steps would pile up and be taken all at once
        draft.say("hold", f"stays at {draft.base}: {why}")


def bounds(draft: Draft) -> None:
    """Stay within minimum and maximum, and above the schedule's floor."""
    limits, window = draft.observation.limits, draft.floor
    if window is not None and draft.want < window.floor:
        draft.want = float(min(window.floor, MOST))
        draft.say("bounds", f"raised to {draft.want:.0f} by schedule {quoted(window.text)}")
    if draft.want < limits.minimum:
        draft.want = float(limits.minimum)
        draft.say("bounds", f"raised to the minimum of {limits.minimum}")
    elif draft.want > limits.maximum:
        draft.want = float(limits.maximum)
        draft.say("bounds", f"cut to the maximum of {limits.maximum}")


def budget(draft: Draft) -> None:
    """Have no more than a budget of GPUs leaves: targets of a higher priority come first."""
    allowance, state = draft.observation.allowance, draft.state
    draft.claim = ceil(draft.want)
    if allowance is None or draft.want <= allowance.replicas:
        return
    draft.want = float(allowance.replicas)
    if state.ruled is not None and draft.ruled is not None:
        state.ruled = min(state.ruled, draft.ruled)  # else steps would pile up and be taken all at once
    draft.say("budget", f"{draft.claim} → {allowance.replicas}: {allowance.text}")


SHAPING: tuple[Callable[[Draft], None], ...] = (burst, smooth, look_ahead, factors, headroom)
"""From a demand to a want. Where no demand is known there is nothing to shape: the count must not multiply itself."""
LIMITING: tuple[Callable[[Draft], None], ...] = (delay, step_limits, credit, blocked, hold, bounds, budget)
"""From a want to a count."""


def _pending(draft: Draft) -> int:
    """Replicas on the way: those that start, and those that were asked for and are not even there yet."""
    replicas = draft.observation.replicas
    return max(0, replicas.starting + replicas.unschedulable, draft.base - replicas.ready)
