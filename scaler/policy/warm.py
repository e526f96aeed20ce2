"""Warm capacity: room on nodes for replicas to come, made ahead of them since a node takes longer than a pod.

A warm replica is no replica: nothing is loaded and nothing serves. It is a place, paid for, in which a pod starts
without waiting for a node. How many there should be is decided here; `scaler.cluster.warm` sees to it.
"""

from __future__ import annotations

from scaler.policy import delays
from scaler.policy.counting import ceil, number
from scaler.policy.decision import Step
from scaler.policy.starts import cold_s
from scaler.policy.steps.ahead import HPA_S, foresee_cold
from scaler.policy.steps.draft import Draft


def warm(draft: Draft, desired: int) -> int:
    """Decide for how many replicas beyond `desired` there should be room; says why in one line.

    A count or a percentage is what it says. `auto` is what the load will need one node and one pod from now, with the
    margin that such forecasts need, beyond the replicas that run or are on the way; never more than maxWarmReplicas,
    and given back only when it was not wanted for as long as it takes to make. Together with `desired` it is never
    more than the maximum, and none while the target is capacity-blocked.
    """
    settings, state = draft.settings, draft.state
    maximum = draft.observation.limits.maximum
    if (allowance := draft.observation.allowance) is not None:
        maximum = min(maximum, max(desired, allowance.replicas))
    room = max(0, maximum - desired)
    if settings.warm_replicas == "auto":
        wanted, text = _forecast(draft, desired)
    else:
        wanted, text = ceil(settings.warm_replicas.of(desired)), f"warmReplicas {settings.warm_replicas}"
    state.warm = 0 if draft.blocked else min(wanted, room)
    if draft.blocked:
        text += "; none, for the replicas themselves find no node"
    elif state.warm < wanted:
        text += f"; {wanted} cut to {state.warm}: no more than the maximum of {maximum} in all"
    if wanted:
        draft.steps.append(Step("warm", float(desired), f"room for {state.warm} more on nodes: {text}"))
    return state.warm


def _forecast(draft: Draft, desired: int) -> tuple[int, str]:
    settings, observation, state = draft.settings, draft.observation, draft.state
    horizon = HPA_S + cold_s(observation.start_up)
    found = None if draft.blind else foresee_cold(draft)
    if found is None:
        return state.warm, "as before, for nothing tells what is to come"
    replicas = observation.replicas
    there = max(desired, replicas.ready + replicas.starting + replicas.unschedulable)
    expected = found.value + settings.headroom.of(found.value)
    most = ceil(settings.max_warm_replicas.of(max(1, desired)))
    wanted = max(0, ceil(expected) - there)
    text = (
        f"{number(expected)} replicas may be needed in {number(horizon)}s ({found.by}, "
        f"{number(found.value - found.expected)} of them for how wrong such forecasts were), {there} are wanted already"
    )
    if wanted > most:
        wanted, text = most, f"{text}; cut to {most} by maxWarmReplicas {settings.max_warm_replicas}"
    state.warm_window = delays.highest(state.warm_window, observation.time, wanted, horizon)
    if (held := state.warm_window[0][1]) > wanted:
        return held, f"{wanted} now, {held} were wanted within {number(horizon)}s: {text}"
    return wanted, text
