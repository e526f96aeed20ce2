"""The read-only service for people and pages: what was decided for each target, and why."""

# ruff: noqa: N802, ARG002 (the names and arguments are those of the protocol)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from scaler.serving import views
from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightServicer
from scaler.targets import Record, Stale, Target, Targets

Context = grpc.aio.ServicerContext[Any, Any]

LOOK_AGAIN_S = 2.0
"""A watch looks this often whether another target has taken the place of one that says nothing."""


class Insight(InsightServicer):
    """Explain, Watch and ListTargets, all from memory."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets

    async def Explain(self, request: pb.TargetRef, context: Context) -> pb.Explanation:
        """The latest decision of a target, or the one that stood some time ago."""
        target = await self._get(request, context)
        now = self._targets.world.clock.utc()
        moment = now - request.seconds_ago
        record = target.history.at(moment) if request.seconds_ago > 0 else target.latest
        if record is None:
            raise Stale(target.reason or "no decision yet")
        view = views.explanation(target, record)
        if record.time > moment and request.seconds_ago > 0:
            view["story"] = f"nothing older is remembered than this, of {now - record.time:.0f}s ago:\n{view['story']}"
        return pb.Explanation(**view)

    async def Watch(self, request: pb.TargetRef, context: Context) -> AsyncIterator[pb.Explanation]:
        """The latest decision at once, then every later one, of the trigger that stands then; ends with the target."""
        told: Record | None = None
        while True:
            target = await self._get(request, context)
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    record = await target.next_record(told)
            except TimeoutError:
                continue
            told = record
            yield pb.Explanation(**views.explanation(target, record))

    async def ListTargets(self, request: pb.ListTargetsRequest, context: Context) -> pb.ListTargetsResponse:
        """All targets and invalid triggers, or those of one namespace, in the order of their names."""
        found = views.summaries(self._targets, request.namespace)
        return pb.ListTargetsResponse(
            targets=[pb.TargetSummary(**view) for view in found], time=self._targets.world.clock.utc()
        )

    async def _get(self, ref: pb.TargetRef, context: Context) -> Target:
        try:
            return self._targets.get(ref.namespace, ref.name, ref.trigger)
        except LookupError as error:
            return await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
