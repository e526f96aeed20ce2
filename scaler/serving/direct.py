"""Direct delivery: on a burst, `spec.replicas` is raised at once, and the HPA agrees at its next sync.

The HPA is told the same count by the emission, so it does not fight; downwards only the HPA acts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from scaler.cluster.errors import ApiError
from scaler.cluster.model import DiscoveryError, Workload
from scaler.targets import Outcomes, Record, Target

log = structlog.get_logger(__name__)

PatchScale = Callable[[str, str, int], Awaitable[None]]


class DirectDelivery:
    """Patches the scale target when a decision says that it should not wait, and only while `leads` says so."""

    def __init__(self, patch_scale: PatchScale, leads: Callable[[], bool]) -> None:
        self._patch_scale = patch_scale
        self._leads = leads
        self._under_way: dict[Target, asyncio.Task[None]] = {}

    def note(self, target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:  # noqa: ARG002
        """Deliver what the tick decided; an observer of the targets' world."""
        desired = record.decision.desired
        if not record.decision.at_once or desired <= workload.requested or workload.paused or not self._leads():
            return
        if target not in self._under_way:
            task = asyncio.create_task(self._deliver(target, desired))
            self._under_way[target] = task
            task.add_done_callback(lambda _: self._under_way.pop(target))

    async def _deliver(self, target: Target, desired: int) -> None:
        try:
            await self._patch_scale(target.namespace, target.name, desired)
        except (ApiError, DiscoveryError) as error:
            log.warning("direct delivery failed, the HPA will deliver", target=str(target), why=str(error))
        else:
            log.info("delivered directly", target=str(target), desired=desired)
