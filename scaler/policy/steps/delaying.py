"""A want must hold before the count follows."""

from __future__ import annotations

from scaler.policy import delays
from scaler.policy.counting import ceil, number
from scaler.policy.steps.draft import Draft

_TIME_EPSILON_S = 1e-6
"""A delay must not take a tick more for the last bit of a difference between two times."""


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
            f"{want} would do, but {down} was wanted within the downscale delay of {settings.downscale_delay_s:g}s",
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
