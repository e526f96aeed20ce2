"""From a want to a count: no further than limits, nodes, knowledge and budget allow."""

from __future__ import annotations

import math

from scaler.policy.counting import MOST, ceil, number, pods
from scaler.policy.parsing import StepLimit
from scaler.policy.starts import node_bound_s
from scaler.policy.steps.draft import Draft
from scaler.quoting import quoted


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
    pending = draft.pending
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
    observation = draft.observation
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
        draft.refuse(most)
    elif draft.want < draft.base and waiting != 0:
        draft.refuse(draft.base)
    draft.say("blocked", f"no more than {most}: {draft.blocked}")


def hold(draft: Draft) -> None:
    """Never go down from ignorance, nor while requests queue."""
    load = draft.observation.load
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
        draft.refuse(draft.base)
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
    allowance = draft.observation.allowance
    draft.claim = ceil(draft.want)
    if allowance is None or draft.want <= allowance.replicas:
        return
    draft.refuse(allowance.replicas)
    draft.say("budget", f"{draft.claim} → {allowance.replicas}: {allowance.text}")
