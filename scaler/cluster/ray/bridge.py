"""The controller of RayWorkerGroups: it has their counts carried, and says in their status what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

import structlog

from scaler.cluster.client import ApiClient
from scaler.cluster.errors import CONFLICT, INVALID, ApiError
from scaler.cluster.events import EventRecorder, Involved
from scaler.cluster.ray.carrier import SCALED, Carrier, Loads, Notes
from scaler.cluster.ray.model import API_VERSION, KIND, BridgeError, WorkerGroup
from scaler.cluster.ray.serve import ServeApi
from scaler.cluster.ray.status import LIMITED, READY, Condition, Counts, Status, reason
from scaler.cluster.ray.view import count, look
from scaler.cluster.ray.watching import Watching
from scaler.cluster.resources import RAY_WORKER_GROUPS

log = structlog.get_logger(__name__)

_RETRY_S = 5.0
"""After something was refused."""
_RACE_S = 0.5
"""After somebody else was faster; the watch usually tells sooner."""
_RACES = 10
"""Races lost in a row are told: something else is the matter."""
_STANDBY_S = 1.0
"""How often a replica that does not lead looks whether it does."""


class RayBridge:
    """Keeps worker groups at what their RayWorkerGroups ask for, while `leads` says so.

    A RayWorkerGroup that goes leaves everything as it is. `namespaces` limits where they are looked for (empty:
    everywhere); `token_file` has what Ray's dashboards ask for, where they do.
    """

    def __init__(
        self,
        client: ApiClient,
        events: EventRecorder,
        loads: Loads,
        leads: Callable[[], bool],
        namespaces: Collection[str] = (),
        token_file: Path | None = None,
    ) -> None:
        self._client = client
        self._events = events
        self._leads = leads
        self._stirred: set[str] = set()
        """Namespaces in which something has changed."""
        self._woken = asyncio.Event()
        self._view = Watching(client, namespaces, self._stir)
        self._serve = ServeApi(token_file)
        self._carrier = Carrier(client, self._view, self._serve, loads, self._say)
        self._notes: dict[str, Notes] = {}
        """By the RayWorkerGroup's uid."""

    async def run(self) -> None:
        """Carry counts until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._view.start(tasks)
                while True:
                    await self._step(tasks)
        finally:
            await self._serve.close()

    async def _step(self, tasks: asyncio.TaskGroup) -> None:
        """Take up what has changed or is due, and wait for more; where another process leads, just wait."""
        if self._leads():
            self._look_around(tasks)
            await self._wait(min((notes.due for notes in self._notes.values()), default=float("inf")))
        else:
            self._notes.clear()
            self._stirred.update(group.namespace for group in self._view.groups)
            await asyncio.sleep(_STANDBY_S)

    def _stir(self, namespace: str) -> None:
        self._stirred.add(namespace)
        self._woken.set()

    async def _wait(self, until: float) -> None:
        timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
        try:
            async with asyncio.timeout(timeout):
                await self._woken.wait()
        except TimeoutError:
            return

    def _look_around(self, tasks: asyncio.TaskGroup) -> None:
        """Take up every RayWorkerGroup near which something has changed, or that is due.

        Each in a task of its own: one whose head does not answer holds up no other.
        """
        stirred, self._stirred = self._stirred, set()
        self._woken.clear()
        groups = list(self._view.groups)
        self._notes = {group.uid: self._notes.get(group.uid) or Notes() for group in groups}
        now = time.monotonic()
        for group in groups:
            notes = self._notes[group.uid]
            if group.namespace not in stirred and notes.due > now:
                continue
            notes.due = float("inf")
            if notes.busy:
                notes.again = True
            else:
                notes.busy = True
                tasks.create_task(self._take_up_safely(group, notes))

    async def _take_up_safely(self, group: WorkerGroup, notes: Notes) -> None:
        try:
            await self._take_up(group, notes)
        except ApiError as error:  # its status could not be written
            log.warning("status not written", group=str(group), error=str(error))
            notes.look_again(_RETRY_S)
        except Exception:  # one group's fault must not end all others
            log.exception("group not carried", group=str(group))
            notes.look_again(_RETRY_S)
        if notes.again:
            notes.look_again(0.0)
        notes.busy = notes.again = False
        self._woken.set()

    async def _take_up(self, group: WorkerGroup, notes: Notes) -> None:
        counts: Counts | None = None
        try:
            scene = look(group, self._view)
            if group.replicas is None:
                await self._carrier.adopt(group, scene)
                return
            workers = self._view.workers(group.namespace, scene.serving.name, group.group)
            counts = count(group, scene.serving, workers)
            carried = await self._carrier.carry(group, scene, group.replicas, counts, notes)
        except BridgeError as error:
            notes.look_again(_RETRY_S)  # what Ray says changes without the API server's knowledge
            await self._tell(group, counts, Condition(READY, False, error.reason, str(error)))
        except ApiError as error:
            raced = error.status in (CONFLICT, INVALID) and notes.races < _RACES
            notes.look_again(_RACE_S if raced else _RETRY_S)
            if raced:
                notes.races += 1
                return
            await self._tell(group, counts, Condition(READY, False, "Refused", str(error)))
        else:
            notes.races = 0
            message = f"{scene.serving} is to have {carried.wish.count} replicas of group {group.group}"
            if not counts.selector:
                message += (
                    "; autoscalers hold, for KubeRay does not say which pods make a replica of several hosts: switch "
                    "its feature gate RayMultiHostIndexing on"
                )
            await self._tell(group, carried.counts, Condition(READY, True, "Carried", message), carried.wish.limit)

    async def _tell(self, group: WorkerGroup, counts: Counts | None, ready: Condition, limit: str = "") -> None:
        """Write the status, and say what is new in it."""
        limited = Condition(LIMITED, bool(limit), "GroupLimits" if limit else "WithinLimits", limit)
        for condition, good in ((ready, ready.holds), (limited, not limit)):
            if not good and condition.reason != reason(group, condition.kind):
                log.warning("group not carried", group=str(group), reason=condition.reason, why=condition.message)
                self._say(group, condition.reason, condition.message)
        conditions = (ready, limited) if ready.holds else (ready,)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = Status(counts, conditions).changed(group, now)
        if status is not None:
            await self._client.patch(RAY_WORKER_GROUPS, group.namespace, group.name, {"status": status}, "status")

    def _say(self, group: WorkerGroup, word: str, note: str) -> None:
        involved = Involved(API_VERSION, KIND, group.namespace, group.name, group.uid)
        self._events.say(involved, word, note, "Normal" if word == SCALED else "Warning")
