"""Ongoing requests: waiting and running ÷ what one replica should have. Source: Ray Serve's autoscaling formula."""

from __future__ import annotations

from scaler.policy.capacity import Capacity, target_ongoing
from scaler.policy.counting import number
from scaler.policy.observation import Observation
from scaler.policy.settings import PolicySettings
from scaler.policy.signals.demand import Demand


def is_default(settings: PolicySettings) -> bool:
    """Tell whether no level signal and no rule is set, so that capacity has to be learned.

    Queue seconds say only that more is needed, never how few would do, so they do not stand alone.
    """
    return not (
        settings.rules
        or settings.target_ongoing_requests
        or settings.target_kv_cache_usage
        or settings.target_tokens_per_second
    )


def demand(settings: PolicySettings, _: Capacity, observation: Observation) -> Demand | None:
    """Demand by the configured `target_ongoing_requests`."""
    target = settings.target_ongoing_requests
    return None if target is None else _demand(observation, target, "")


def learned_demand(settings: PolicySettings, capacity: Capacity, observation: Observation) -> Demand | None:
    """Demand by the capacity that replicas were seen to have (or by `max_num_seqs` where it is given)."""
    target, source = target_ongoing(settings, capacity)
    return _demand(observation, target, f" ({source})")


def _demand(observation: Observation, target: float, source: str) -> Demand | None:
    load = observation.load
    if load.waiting is None or load.running is None:
        return None
    return Demand(
        (load.waiting + load.running) / target,
        f"{number(load.waiting)} waiting + {number(load.running)} running ÷ {number(target)} a replica{source}",
        backlog=load.waiting / target,
    )
