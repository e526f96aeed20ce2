"""One decision: a list of small steps from what was observed to the count that is wanted."""

from __future__ import annotations

from dataclasses import replace

from scaler.policy.counting import ceil
from scaler.policy.decision import Decision
from scaler.policy.emission import emit
from scaler.policy.observation import Observation
from scaler.policy.schedule import floor_at
from scaler.policy.settings import PolicySettings
from scaler.policy.state import State
from scaler.policy.steps import LIMITING, SHAPING, Draft, signals
from scaler.policy.warm import warm

_GAP_TICKS = 30
"""So many ticks without a decision, and nothing can be said to have held all the while."""
_HOLDING = frozenset(step.__name__ for step in LIMITING)


def decide(settings: PolicySettings, state: State | None, observation: Observation) -> tuple[State, Decision]:
    """Decide the replica count for one observation.

    `state` is what the last call returned, or None for the first; it is not changed. The same arguments give
    the same answer: there is no clock and no I/O here. Where time runs backwards a little, the decision is made
    as if none had passed; over a jump, either way, windows and averages begin anew.
    """
    state = State() if state is None else state.copy()
    if state.time is not None:
        passed = observation.time - state.time
        if abs(passed) > _GAP_TICKS * settings.metrics_interval_s:
            state = state.after_gap(observation.time)
        elif passed < 0:
            observation = replace(observation, time=observation.time - passed)
    base = observation.replicas.requested if state.desired is None else state.desired
    floor = floor_at(settings.min_replicas_schedule, observation.utc)
    draft = Draft(settings, observation, state, base, float(base), floor)
    signals(draft)
    for step in LIMITING if draft.blind else SHAPING + LIMITING:
        step(draft)
    desired = ceil(draft.want)
    if desired != base:
        horizon = max(
            (limit.period_s for limit in (settings.upscale_limit, settings.downscale_limit) if limit),
            default=0,
        )
        recent = (change for change in state.changes if change[0] > observation.time - horizon)
        state.changes = (*recent, (observation.time, desired - base))
    state.desired, state.time = desired, observation.time
    decision = Decision(
        time=observation.time,
        desired=desired,
        reason=_reason(draft, desired),
        falls_in_s=_falls_in_s(draft, desired),
        blocked=draft.blocked,
        claim=draft.claim,
        warm=warm(draft, desired),
        active=_active(draft),
        at_once=draft.burst and settings.delivery == "direct" and desired > base,
        demand=draft.demand,
        steps=tuple(draft.steps),
        emission=emit(desired, observation.replicas.current, observation.limits, settings.tolerance_mode),
    )
    return state, decision


def _reason(draft: Draft, desired: int) -> str:
    """Name the step that settled the count: the last one that moved it, or what held it where it was."""
    settled = draft.steps[-1] if draft.blind else None
    before = draft.base
    for step in draft.steps:
        moved = ceil(step.replicas) != before or step.rule == "burst"  # which moves it by lifting the delays
        if moved if desired != draft.base else step.rule in _HOLDING:
            settled = step
        before = ceil(step.replicas)
    return f"{settled.rule}: {settled.text}" if settled else "steady"


def _falls_in_s(draft: Draft, desired: int) -> float | None:
    if desired < draft.base:
        return 0.0
    return draft.falls_in_s if draft.base > draft.observation.limits.minimum else None


def _active(draft: Draft) -> bool:
    """Tell whether going to zero now could hurt: something waits, runs, loads or cannot be seen, or a floor holds."""
    load, replicas = draft.observation.load, draft.observation.replicas
    busy = any(load.known > 0 if value is None else value > 0 for value in (load.waiting, load.running))
    loading = replicas.starting > 0 or replicas.unschedulable > 0
    return busy or loading or bool(load.unknown) or draft.floor is not None
