"""KEDA's protocol: find the target, read its last decision, translate it. Nothing is decided here."""

# ruff: noqa: N802, ARG002 (the names and arguments are those of the protocol)

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc

from scaler.serving.protocol import externalscaler_pb2 as pb
from scaler.serving.protocol.externalscaler_pb2_grpc import ExternalScalerServicer
from scaler.targets import SettingsError, Stale, Target, Targets, trigger_id

FIRST_DECISION_S = 2.0
"""How long GetMetrics waits for a brand-new target's first decision: one tick of the slowest usual interval."""

REPEAT_S = 5.0
REPEAT_AT_ZERO_S = 1.0
REPEAT_ABOVE_A_MINIMUM_S = 60.0
"""How often StreamIsActive repeats `true`. KEDA drops an activation that comes before its own first poll, so it is
repeated; at zero replicas sooner, because a user waits there, and otherwise seldom, because each one makes KEDA
write the ScaledObject's status: most seldom where KEDA has no zero to go to, so that it moves nothing."""

Context = grpc.aio.ServicerContext[Any, Any]


class ExternalScaler(ExternalScalerServicer):
    """The five RPCs that KEDA calls. Errors become status codes in `scaler.serving.guard`."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets

    async def GetMetricSpec(self, request: pb.ScaledObjectRef, context: Context) -> pb.GetMetricSpecResponse:
        """The one metric and its target of 1: constant, and known before anything was read.

        An invalid trigger has it too, and only GetMetrics says what is wrong: from a refused GetMetricSpec KEDA up to
        2.19 makes an HPA without a metric of ours, which scales by the pods' CPU.
        """
        try:
            return metric_spec(self._find(request).trigger)
        except SettingsError:
            return metric_spec(trigger_id(request.scalerMetadata))

    async def GetMetrics(self, request: pb.GetMetricsRequest, context: Context) -> pb.GetMetricsResponse:
        """The emission of the last decision; UNAVAILABLE, which freezes the HPA, when that is too old."""
        target = self._find(request.scaledObjectRef)
        await target.first_decision(FIRST_DECISION_S)
        return metric_value(target, target.answer())

    async def IsActive(self, request: pb.ScaledObjectRef, context: Context) -> pb.IsActiveResponse:
        """Whether anything waits, runs, loads or cannot be seen; UNAVAILABLE as for GetMetrics."""
        target = self._find(request)
        await target.first_decision(FIRST_DECISION_S)
        return pb.IsActiveResponse(result=target.active)

    async def StreamIsActive(self, request: pb.ScaledObjectRef, context: Context) -> AsyncIterator[pb.IsActiveResponse]:
        """The state at once; then `true` again and again while active, and `false` once when that ends."""
        target = self._find(request)
        with target.asking.stream():
            async for active in activity(target):
                yield pb.IsActiveResponse(result=active)

    async def StreamMetricSpec(
        self, request: pb.ScaledObjectRef, context: Context
    ) -> AsyncIterator[pb.GetMetricSpecResponse]:
        """What GetMetricSpec says, at once; as it never changes, nothing follows."""
        yield metric_spec(self._find(request).trigger)
        await asyncio.Event().wait()

    def _find(self, ref: pb.ScaledObjectRef) -> Target:
        return self._targets.find(ref.namespace, ref.name, ref.scalerMetadata)


def metric_name(trigger: str) -> str:
    """The metric's name: the same as long as the trigger's policy is, in characters that every API keeps."""
    return f"vllm-replicas-{trigger}"


def metric_spec(trigger: str) -> pb.GetMetricSpecResponse:
    """A target of 1 in both fields: KEDA before 2.17 reads only the integer."""
    spec = pb.MetricSpec(metricName=metric_name(trigger), targetSize=1, targetSizeFloat=1.0)
    return pb.GetMetricSpecResponse(metricSpecs=[spec])


def metric_value(target: Target, value: float) -> pb.GetMetricsResponse:
    """Exactly one value, as the HPA adds up all that it is given; the integer rounds up for old versions of KEDA."""
    name = metric_name(target.trigger)
    answer = pb.MetricValue(metricName=name, metricValue=math.ceil(value), metricValueFloat=value)
    return pb.GetMetricsResponse(metricValues=[answer])


async def activity(target: Target) -> AsyncIterator[bool]:
    """The target's activity as KEDA wants it pushed: edges at once, `true` repeated, `false` never repeated.

    While it cannot be told, nothing is said: KEDA up to 2.17 would take a `false` for an order to go to zero.
    """
    clock = asyncio.get_running_loop().time
    said: bool | None = None
    due = clock()
    seen = target.latest
    while True:
        with suppress(Stale):
            active = target.active
            if active != said or (active and clock() >= due):
                yield active
                said = active
                due = clock() + _repeat_s(target)
        with suppress(TimeoutError):
            async with asyncio.timeout(REPEAT_AT_ZERO_S):
                seen = await target.next_record(seen)


def _repeat_s(target: Target) -> float:
    if target.latest is not None and target.latest.observation.replicas.requested == 0:
        return REPEAT_AT_ZERO_S
    return REPEAT_S if target.may_be_idled else REPEAT_ABOVE_A_MINIMUM_S
