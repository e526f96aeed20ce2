"""One decision: a list of small steps from what was observed to the count that is wanted."""

from __future__ import annotations

from dataclasses import replace

from scaler.policy.decision import Decision, Step
from scaler.policy.emission import emit
from scaler.policy.observation import Observation
from scaler.policy.schedule import floor_at
from scaler.policy.settings import PolicySettings
from scaler.policy.state import State
from scaler.policy.steps import STEPS, Draft, ceil


def decide(settings: PolicySettings, state: State | None, observation: Observation) -> tuple[State, Decision]:
    """Decide the replica count for one observation.

    `state` is what the last call returned, or None for the first; it is not changed. The same arguments give
    the same answer: there is no clock and no I/O here. Time must not run backwards between two calls; if it
    does, the decision is made as if no time had passed.
    """
    state = State() if state is None else state.copy()
    if state.time is not None and observation.time < state.time:
        observation = replace(observation, time=state.time)
    base = observation.replicas.requested if state.desired is None else state.desired
    draft = Draft(settings, observation, state, base, float(base))
    for step in STEPS:
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
        reason=_reason(draft.steps, base, desired),
        active=_active(observation, draft),
        demand=draft.demand,
        steps=tuple(draft.steps),
        emission=emit(desired, observation.replicas.current, observation.limits, settings.tolerance_mode),
    )
    return state, decision


def _reason(steps: list[Step], base: int, desired: int) -> str:
    """Name the step that settled the count: the last one that moved it."""
    if desired == base:
        held = [step for step in steps if step.rule in ("delay", "step_limits", "credit", "hold", "bounds")]
        step = held[-1] if held else None
        return f"{step.rule}: {step.text}" if step else "steady"
    before, reason = float(base), ""
    for step in steps:
        if ceil(step.replicas) != ceil(before) or not reason:
            reason = f"{step.rule}: {step.text}"
        before = step.replicas
    return reason


def _active(observation: Observation, draft: Draft) -> bool:
    """Tell whether going to zero now could hurt: something waits, runs, loads or cannot be seen, or a floor holds."""
    load, replicas = observation.load, observation.replicas
    busy = any(value is None or value > 0 for value in (load.waiting, load.running)) if load.known else False
    loading = replicas.starting > 0 or replicas.unschedulable > 0
    floor = floor_at(draft.settings.min_replicas_schedule, observation.utc) is not None
    return busy or loading or bool(load.unknown) or floor
