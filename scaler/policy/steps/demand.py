"""The first step: what the load needs, by the signals and the rules."""

from __future__ import annotations

from scaler.policy.capacity import learn
from scaler.policy.counting import MOST, ceil, pods
from scaler.policy.rule_values import rule_values
from scaler.policy.rules import Rule, Streak, Values, advance
from scaler.policy.signals import SIGNALS
from scaler.policy.steps.draft import Draft
from scaler.quoting import quoted


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
    coming = draft.pending
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
