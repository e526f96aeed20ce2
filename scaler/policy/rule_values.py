"""The values that rules compare, from an observation."""

from __future__ import annotations

from scaler.policy.capacity import Capacity
from scaler.policy.observation import Load, Observation
from scaler.policy.rules import Values
from scaler.policy.settings import PolicySettings
from scaler.policy.signals.queue import queue_seconds


def rule_values(settings: PolicySettings, capacity: Capacity, observation: Observation) -> Values:
    """Return every metric that a rule may name, None where it is unknown."""
    load = observation.load
    ongoing = None if load.waiting is None or load.running is None else load.waiting + load.running
    values: dict[str, float | None] = {
        "queue_seconds": queue_seconds(load),
        "waiting": load.waiting,
        "running": load.running,
        "ongoing": ongoing,
        "ongoing_per_replica": _per_replica(ongoing, load),
        "request_rate": load.arrival_rate,
        "request_rate_per_replica": _per_replica(load.arrival_rate, load),
        "token_rate": None
        if load.prompt_token_rate is None or load.generation_token_rate is None
        else load.prompt_token_rate + load.generation_token_rate,
        "utilization": _utilization(settings, capacity, load),
        "kv_cache_usage": load.kv_cache_usage,
        "gpu_utilization": load.gpu_utilization,
        "replicas_for_arrivals": None
        if not load.arrival_rate or not load.completion_rate
        else load.known * load.arrival_rate / load.completion_rate,
    }
    for name, latency in load.latency.items():
        for quantile in ("p50", "p90", "p95", "p99"):
            values[f"{name}_{quantile}"] = getattr(latency, quantile)
        values[f"worst_{name}_p95"] = latency.worst_p95
    return values


def _per_replica(total: float | None, load: Load) -> float | None:
    return None if total is None or not load.known else total / load.known


def _utilization(settings: PolicySettings, capacity: Capacity, load: Load) -> float | None:
    """Share of a replica in use, 0 to 1, by what the settings say utilization is."""
    slots = settings.max_num_seqs or capacity.slots
    running = _per_replica(load.running, load)
    by_slots = None if slots is None or running is None else min(1.0, running / slots)
    match settings.utilization:
        case "slots":
            return by_slots
        case "kv":
            return load.kv_cache_usage
        case "gpu":
            return load.gpu_utilization
        case "auto":
            return max((use for use in (by_slots, load.kv_cache_usage) if use is not None), default=None)
