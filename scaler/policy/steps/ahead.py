"""What the load will need when a replica that is asked for now serves."""

from __future__ import annotations

import math

from scaler.policy import forecast
from scaler.policy.counting import ceil, number
from scaler.policy.signals.ongoing import is_default
from scaler.policy.starts import cold_s, may_wait_for_node, waits_for_node, warm_s
from scaler.policy.steps.draft import Draft

HPA_S = 10.0
"""What delivery adds to a start: half a sync of the HPA, and a tick."""
_SURE = 0.1
"""A forecast of less must leave so much room in the smaller count, or chance alone would move it to and fro."""
_CHANCE = 3.0
"""Standard deviations by which a jump of arrivals stands out of chance: those of a count (Poisson), or those seen."""
_WINDOW_S = (10.0, 60.0)
"""An excess of load hurts when it lasts about as long as a request does, within these bounds."""


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
        chance = math.sqrt(load / look_back)
        if load - _CHANCE * chance > found.value:
            sure = load - _CHANCE * max(chance, forecast.scatter(record, look_back))
            found = max(found, forecast.Forecast(sure, sure, "arriving already"), key=lambda either: either.value)
    return record, forecast.Forecast(found.value * each, found.expected * each, found.by)


def foresee_cold(draft: Draft) -> forecast.Forecast | None:
    """Forecast the demand, in replicas, of one node and one start from now; once a tick, whoever asks."""
    if not draft.foreseen:
        horizon = HPA_S + cold_s(draft.observation.start_up)
        draft.state.cold_record, draft.cold = foresee(draft, draft.state.cold_record, horizon)
        draft.foreseen = True
    return draft.cold
