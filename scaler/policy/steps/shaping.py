"""From a demand to a want: averaged, multiplied and with headroom."""

from __future__ import annotations

from scaler.policy.counting import MOST, ceil, number
from scaler.policy.steps.draft import Draft


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
