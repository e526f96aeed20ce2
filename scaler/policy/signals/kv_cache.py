"""KV cache: Σ use over replicas ÷ the use that one should have."""

from __future__ import annotations

from scaler.policy.capacity import Capacity
from scaler.policy.observation import Observation
from scaler.policy.settings import PolicySettings
from scaler.policy.signals.demand import Demand


def demand(settings: PolicySettings, _: Capacity, observation: Observation) -> Demand | None:
    """Demand by `target_kv_cache_usage`."""
    load, target = observation.load, settings.target_kv_cache_usage
    if load.kv_cache_usage is None or target is None:
        return None
    return Demand(
        load.known * load.kv_cache_usage / target,
        f"{load.known} × {load.kv_cache_usage:.0%} of the KV cache ÷ {target:.0%} a replica",
    )
