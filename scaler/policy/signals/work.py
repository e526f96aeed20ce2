"""Work: requests that arrive ÷ requests that a replica serves within the objectives, as it was seen to serve them."""

from __future__ import annotations

from scaler.policy.capacity import Capacity, service
from scaler.policy.counting import number
from scaler.policy.observation import Observation
from scaler.policy.settings import PolicySettings
from scaler.policy.signals import ongoing
from scaler.policy.signals.demand import Demand

_WORK_OFF_S = 60.0
"""In which time what is too much for the present replicas should be worked off."""


def demand(settings: PolicySettings, capacity: Capacity, observation: Observation) -> Demand | None:
    """Demand by arrivals, once capacity is learned; before, and for engines that count none, by ongoing requests.

    Arrivals tell at once what ongoing requests tell only when they have piled up, a request's life later. What
    stands in an engine's queue stays there, whoever joins: as many replicas are lost to new requests meanwhile, and
    never more than there are.
    """
    load, given = observation.load, service(settings, capacity)
    if given is None or load.arrival_rate is None or load.waiting is None or load.running is None or not load.known:
        return ongoing.learned_demand(settings, capacity, observation)
    bearable = given.running + given.rate * (settings.ttft_slo_s or 0.0)
    excess = max(0.0, load.waiting + load.running - load.known * bearable)
    backlog = min(float(load.known), excess / (given.rate * _WORK_OFF_S))
    text = (
        f"{number(load.arrival_rate)} requests/s ÷ {number(given.rate)} a replica "
        f"({number(given.running)} at a time, {number(given.request_s)}s each: {given.why})"
    )
    if backlog:
        text += f", and {number(backlog)} for the {number(excess)} too many that are there"
    return Demand(
        load.arrival_rate / given.rate + backlog,
        text,
        backlog=backlog,
        per_arrival_rate=1 / given.rate,
        request_s=given.request_s,
    )
