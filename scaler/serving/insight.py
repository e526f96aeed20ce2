"""The read-only service for people and pages: what was decided for each target, and why."""

# ruff: noqa: N802, ARG002 (the names and arguments are those of the protocol)

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightServicer
from scaler.targets import PodRecord, Record, Stale, Target, Targets, story

Context = grpc.aio.ServicerContext[Any, Any]


class Insight(InsightServicer):
    """Explain, Watch and ListTargets, all from memory."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets

    async def Explain(self, request: pb.TargetRef, context: Context) -> pb.Explanation:
        """The latest decision of a target."""
        target = await self._get(request, context)
        if target.latest is None:
            raise Stale(target.reason or "no decision yet")
        return explanation(target, target.latest)

    async def Watch(self, request: pb.TargetRef, context: Context) -> AsyncIterator[pb.Explanation]:
        """The latest decision at once, then every later one."""
        target = await self._get(request, context)
        if (record := target.latest) is not None:
            yield explanation(target, record)
        while True:
            record = await target.next_record(record)
            yield explanation(target, record)

    async def ListTargets(self, request: pb.ListTargetsRequest, context: Context) -> pb.ListTargetsResponse:
        """All targets, or those of one namespace, in the order of their names."""
        found = [target for target in self._targets if request.namespace in ("", target.namespace)]
        found.sort(key=lambda target: (target.namespace, target.name, target.trigger))
        return pb.ListTargetsResponse(
            targets=[summary(target) for target in found], time=self._targets.world.clock.utc()
        )

    async def _get(self, ref: pb.TargetRef, context: Context) -> Target:
        try:
            return self._targets.get(ref.namespace, ref.name, ref.trigger)
        except LookupError as error:
            return await context.abort(grpc.StatusCode.NOT_FOUND, str(error))


def explanation(target: Target, record: Record) -> pb.Explanation:
    """A decision with everything that it was made from."""
    decision, load = record.decision, record.observation.load
    return pb.Explanation(
        namespace=target.namespace,
        name=target.name,
        trigger=target.trigger,
        policy=target.policy_name,
        state=pb.State.Value(target.state.name),
        reason=target.reason,
        time=record.time,
        replicas=replicas(record),
        load=pb.Load(
            known_pods=load.known,
            unknown_pods=len(load.unknown),
            waiting=load.waiting,
            running=load.running,
            kv_cache_usage=load.kv_cache_usage,
        ),
        emission=pb.Emission(
            value=record.emission,
            arrives_at=decision.emission.arrives_at,
            note=decision.emission.note,
        ),
        last_change=record.last_change,
        last_change_time=record.last_change_time,
        demand=decision.demand,
        steps=[pb.Step(rule=step.rule, replicas=step.replicas, text=step.text) for step in decision.steps],
        pods=[pod_reading(pod, record.time) for pod in record.pods],
        warnings=target.warnings,
        story=story(target, record),
    )


def summary(target: Target) -> pb.TargetSummary:
    """One line of a list of targets."""
    record = target.latest
    return pb.TargetSummary(
        namespace=target.namespace,
        name=target.name,
        trigger=target.trigger,
        policy=target.policy_name,
        state=pb.State.Value(target.state.name),
        reason=target.reason,
        replicas=replicas(record) if record else None,
        unknown_pods=len(record.observation.load.unknown) if record else 0,
        last_change=record.last_change if record else "",
        last_change_time=record.last_change_time if record else 0.0,
        warnings=target.warnings,
    )


def replicas(record: Record) -> pb.Replicas:
    """Where the replicas are, where they should be, and their limits."""
    seen, limits = record.observation.replicas, record.observation.limits
    return pb.Replicas(
        desired=record.decision.desired,
        requested=seen.requested,
        current=seen.current,
        ready=seen.ready,
        starting=seen.starting,
        terminating=seen.terminating,
        unschedulable=seen.unschedulable,
        minimum=limits.minimum,
        maximum=limits.maximum,
    )


def pod_reading(pod: PodRecord, time: float) -> pb.PodReading:
    """What one pod's page said, or why that is unknown; a pod that is not ready was not asked."""
    return pb.PodReading(
        pod=pod.name,
        phase=pod.phase.value,
        phase_seconds=max(0.0, time - pod.since),
        waiting=pod.waiting,
        running=pod.running,
        kv_cache_usage=pod.kv_cache_usage,
        unknown=pod.unknown,
    )
