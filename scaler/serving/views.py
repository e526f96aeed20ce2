"""What people and pages are told about targets, as plain values with the names of proto/insight.proto.

The gRPC service makes its messages of them and the page's API its JSON, so that both say the same. None is unknown.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from scaler.targets import Invalid, PodRecord, Record, Target, Targets, state_of, story

View = dict[str, Any]


def explanation(target: Target, record: Record) -> View:
    """A decision, the latest or a remembered one, with everything that it was made from."""
    decision, observation = record.decision, record.observation
    is_latest = record is target.latest
    return {
        **_identity(target),
        "state": (target.state if is_latest else state_of(decision)).name,
        "reason": target.reason if is_latest else decision.blocked,
        "time": record.time,
        "replicas": replicas(record),
        "load": load(record),
        "emission": {
            "value": record.emission,
            "arrives_at": decision.emission.arrives_at,
            "note": decision.emission.note,
        },
        "why": decision.reason,
        "last_change": record.last_change,
        "last_change_time": record.last_change_time,
        "demand": dict(decision.demand),
        "steps": [{"rule": step.rule, "replicas": step.replicas, "text": step.text} for step in decision.steps],
        "pods": [pod_reading(pod, record.time) for pod in record.pods],
        "warnings": target.warnings if is_latest else record.warnings,
        "story": story(target, record),
        "start_up": asdict(observation.start_up) if observation.start_up else None,
    }


def summaries(targets: Targets, namespace: str = "") -> list[View]:
    """One line for each target and each invalid trigger, of one namespace or all, in the order of their names."""
    found = [*(summary(target) for target in targets), *(invalid(trigger) for trigger in targets.invalid)]
    return sorted(
        (view for view in found if namespace in ("", view["namespace"])),
        key=lambda view: (view["namespace"], view["name"], view["trigger"]),
    )


def summary(target: Target) -> View:
    """One line of a list of targets."""
    record = target.latest
    return {
        **_identity(target),
        "state": target.state.name,
        "reason": target.reason,
        "replicas": replicas(record) if record else None,
        "unknown_pods": len(record.observation.load.unknown) if record else 0,
        "last_change": record.last_change if record else "",
        "last_change_time": record.last_change_time if record else 0.0,
        "warnings": target.warnings,
        "waiting": record.observation.load.waiting if record else None,
        "running": record.observation.load.running if record else None,
    }


def invalid(trigger: Invalid) -> View:
    """The line of a trigger that is not served because it is wrong."""
    return {
        "namespace": trigger.namespace,
        "name": trigger.name,
        "trigger": trigger.trigger,
        "state": "INVALID",
        "reason": trigger.error,
    }


def replicas(record: Record) -> View:
    """Where the replicas are, where they should be, and their limits."""
    limits = record.observation.limits
    return {
        "desired": record.decision.desired,
        "warm": record.decision.warm,
        **asdict(record.observation.replicas),
        "minimum": limits.minimum,
        "maximum": limits.maximum,
    }


def load(record: Record) -> View:
    """Sums over the pods that could be read."""
    seen = record.observation.load
    return {
        "known_pods": seen.known,
        "unknown_pods": len(seen.unknown),
        "waiting": seen.waiting,
        "running": seen.running,
        "kv_cache_usage": seen.kv_cache_usage,
        "gpu_utilization": seen.gpu_utilization,
        "arrival_rate": seen.arrival_rate,
        "completion_rate": seen.completion_rate,
        "prompt_token_rate": seen.prompt_token_rate,
        "generation_token_rate": seen.generation_token_rate,
        "latency": {name: asdict(latency) for name, latency in seen.latency.items()},
    }


def pod_reading(pod: PodRecord, time: float) -> View:
    """What one pod's page said, or why that is unknown; a pod that is not ready was not asked."""
    return {
        "pod": pod.name,
        "phase": pod.phase.value,
        "phase_seconds": max(0.0, time - pod.since),
        "waiting": pod.waiting,
        "running": pod.running,
        "kv_cache_usage": pod.kv_cache_usage,
        "unknown": pod.unknown,
    }


def _identity(target: Target) -> View:
    return {
        "namespace": target.namespace,
        "name": target.name,
        "trigger": target.trigger,
        "policy": target.policy_name,
    }
