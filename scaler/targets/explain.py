"""The story of a decision: what was seen, what each step did, what KEDA is told."""

from __future__ import annotations

from scaler.cluster.model import Phase
from scaler.policy.observation import StartUp
from scaler.targets.record import PodRecord, Record
from scaler.targets.target import Target, TargetState

_PODS_SHOWN = 12


def story(target: Target, record: Record) -> str:
    """Tell one tick, the latest or one of those that are remembered, in a few lines for people."""
    is_latest = record is target.latest
    decision, observation = record.decision, record.observation
    replicas, load = observation.replicas, observation.load
    lines = [
        f"{target} (policy {target.policy_name}) wants {_replicas(decision.desired)}: {decision.reason}",
        f"  replicas: {replicas.requested} requested, {replicas.ready} ready, {replicas.starting} starting, "
        f"{replicas.terminating} terminating, {replicas.unschedulable} unschedulable; "
        f"limits {observation.limits.minimum} to {observation.limits.maximum}",
    ]
    if decision.warm:
        lines.append(f"  room on nodes: for {_replicas(decision.warm)} more, for {replicas.room} there")
    if is_latest and target.state is TargetState.STALE:
        lines.append(f"  STALE: {target.reason}")
    if decision.blocked:
        lines.append(f"  CAPACITY-BLOCKED: {decision.blocked}")
    lines.extend(f"  warning: {warning}" for warning in (target.warnings if is_latest else record.warnings))
    seen = [f"{_number(load.waiting)} waiting", f"{_number(load.running)} running"]
    if load.kv_cache_usage is not None:
        seen.append(f"KV cache {load.kv_cache_usage:.0%}")
    if load.arrival_rate is not None:
        seen.append(f"{load.arrival_rate:.3g} requests/s arrive")
    if load.generation_token_rate is not None:
        seen.append(f"{load.generation_token_rate:.4g} tokens/s")
    seen.extend(f"{name} p95 {latency.p95:.3g}s" for name, latency in load.latency.items())
    lines.append(f"  seen on {load.known} of {load.known + len(load.unknown)} ready pods: {', '.join(seen)}")
    if observation.start_up is not None:
        lines.append(f"  {_start_up(observation.start_up)}")
    lines.extend(f"    {_pod(pod, record.time)}" for pod in _telling_first(record.pods)[:_PODS_SHOWN])
    if len(record.pods) > _PODS_SHOWN:
        lines.append(f"    … and {len(record.pods) - _PODS_SHOWN} more pods")
    lines.append("  decided:")
    lines.extend(f"    {step.rule:<12} → {step.replicas:<6.4g} {step.text}" for step in decision.steps)
    emission = f"  KEDA is told {record.emission:g}"
    if record.emission != decision.emission.value:
        emission += f" (shadow: the present count instead of {decision.emission.value:g})"
    else:
        emission += f"; the HPA arrives at {decision.emission.arrives_at}"
        emission += f": {decision.emission.note}" if decision.emission.note else ""
    lines.append(emission)
    if record.last_change:
        lines.append(
            f"  last change {max(0.0, record.time - record.last_change_time):.0f}s before: {record.last_change}"
        )
    return "\n".join(lines)


def _start_up(start_up: StartUp) -> str:
    text = f"a start takes {start_up.median:.3g}s (median), {start_up.p90:.3g}s (p90)"
    ways = (("on a node that is there", start_up.warm), ("with a new node", start_up.cold))
    parts = (("node", start_up.node), ("images", start_up.image), ("loading", start_up.load))
    if start_up.cold is not None:
        text += "".join(f", {took.median:.3g}s {name}" for name, took in ways if took)
    shown = ", ".join(f"{name} {took.median:.3g}s" for name, took in parts if took)
    return f"{text}: {shown}" if shown else text


def _pod(pod: PodRecord, now: float) -> str:
    where = f"{pod.name}: {pod.phase} for {max(0.0, now - pod.since):.0f}s"
    if pod.phase is Phase.READY and not pod.unknown:
        return f"{where}, {_number(pod.waiting)} waiting, {_number(pod.running)} running"
    what = "UNKNOWN, " if pod.phase is Phase.READY else ""
    return f"{where}, {what}{pod.unknown}" if pod.unknown else where


def _telling_first(pods: tuple[PodRecord, ...]) -> list[PodRecord]:
    """Put first the pods that a reader looks for: unknown ones, then those not ready, then the longest queues."""
    return sorted(pods, key=lambda p: (not p.unknown, p.phase is Phase.READY, -(p.waiting or 0.0), p.name))


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"
