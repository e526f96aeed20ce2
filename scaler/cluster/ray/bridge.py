"""The controller of RayWorkerGroups: it carries their counts to KubeRay, and says in their status what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from scaler.cluster.client import ApiClient
from scaler.cluster.errors import CONFLICT, INVALID, ApiError
from scaler.cluster.events import EventRecorder, Involved, Severity
from scaler.cluster.ray.carry import Wish, patch, wish
from scaler.cluster.ray.contest import Memory, looked, written
from scaler.cluster.ray.model import API_VERSION, KIND, BridgeError, RayObject, TargetKind, Worker, WorkerGroup
from scaler.cluster.ray.status import LIMITED, READY, Condition, Counts, Status, reason
from scaler.cluster.ray.view import Scene, count, group_of, look
from scaler.cluster.ray.watching import Watching
from scaler.cluster.resources import RAY_CLUSTERS, RAY_SERVICES, RAY_WORKER_GROUPS

log = structlog.get_logger(__name__)

Loads = Callable[[str], Mapping[str, float]]
"""The requests that are in each pod of a namespace, as far as they are known."""

_RESOURCES = {TargetKind.CLUSTER: RAY_CLUSTERS, TargetKind.SERVICE: RAY_SERVICES}
OTHER_WRITER = "OtherWriter"
_RETRY_S = 5.0
"""After the API server has refused something."""
_RACE_S = 0.5
"""After somebody else was faster; the watch usually tells sooner."""
_RACES = 10
"""Races lost in a row are told: something else is the matter."""
_STANDBY_S = 1.0
"""How often a replica that does not lead looks whether it does."""


@dataclass(slots=True)
class _Notes:
    """What is remembered of a RayWorkerGroup while this process leads."""

    memories: dict[str, Memory] = field(default_factory=dict)
    """By the uid of the object that is written to."""
    races: int = 0
    due: float = float("inf")
    """When it is to be looked at again though nothing has changed (monotonic)."""


class RayBridge:
    """Keeps worker groups at what their RayWorkerGroups ask for, while `leads` says so.

    A RayWorkerGroup that goes leaves everything as it is. `namespaces` limits where they are looked for (empty:
    everywhere).
    """

    def __init__(
        self,
        client: ApiClient,
        events: EventRecorder,
        loads: Loads,
        leads: Callable[[], bool],
        namespaces: Collection[str] = (),
    ) -> None:
        self._client = client
        self._events = events
        self._loads = loads
        self._leads = leads
        self._stirred: set[str] = set()
        """Namespaces in which something has changed."""
        self._woken = asyncio.Event()
        self._view = Watching(client, namespaces, self._stir)
        self._notes: dict[str, _Notes] = {}
        """By the RayWorkerGroup's uid."""

    async def run(self) -> None:
        """Carry counts until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            await self._view.start(tasks)
            while True:
                if self._leads():
                    await self._look_around()
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

    async def _look_around(self) -> None:
        """Take up every RayWorkerGroup near which something has changed, or that is due."""
        stirred, self._stirred = self._stirred, set()
        self._woken.clear()
        groups = list(self._view.groups)
        self._notes = {group.uid: self._notes.get(group.uid) or _Notes() for group in groups}
        now = time.monotonic()
        for group in groups:
            notes = self._notes[group.uid]
            if group.namespace not in stirred and notes.due > now:
                continue
            notes.due = float("inf")
            try:
                await self._take_up(group, notes)
            except ApiError as error:  # its status could not be written
                log.warning("status not written", group=_name(group), error=str(error))
                notes.due = time.monotonic() + _RETRY_S
            except Exception:  # one group's fault must not end all others
                log.exception("group not carried", group=_name(group))
                notes.due = time.monotonic() + _RETRY_S

    async def _take_up(self, group: WorkerGroup, notes: _Notes) -> None:
        counts: Counts | None = None
        try:
            scene = look(group, self._view)
            workers = self._view.workers(group.namespace, scene.serving.name, group.group)
            counts = count(group, scene.serving, workers)
            if group.replicas is None:
                await self._adopt(group, scene.serving)
                return
            wished = await self._carry_to_all(group, scene, group.replicas, notes)
        except BridgeError as error:
            await self._tell(group, counts, Condition(READY, False, error.reason, str(error)))
        except ApiError as error:
            raced = error.status in (CONFLICT, INVALID) and notes.races < _RACES
            notes.due = min(notes.due, time.monotonic() + (_RACE_S if raced else _RETRY_S))
            if raced:
                notes.races += 1
                return
            await self._tell(group, counts, Condition(READY, False, "Refused", str(error)))
        else:
            notes.races = 0
            message = f"{scene.serving} is to have {wished.count} replicas of group {group.group}"
            await self._tell(group, counts, Condition(READY, True, "Carried", message), wished.limit)

    async def _adopt(self, group: WorkerGroup, serving: RayObject) -> None:
        """Begin with the count that is there. Before that there is no selector, so nobody asks for another one."""
        spec = group_of(serving, group)
        present = serving.count(spec)
        if not serving.autoscaled:
            present = min(max(present, spec.minimum), spec.maximum)
        body = {"metadata": {"uid": group.uid}, "spec": {"replicas": present}}
        await self._client.patch(RAY_WORKER_GROUPS, group.namespace, group.name, body)
        log.info("count adopted", group=_name(group), replicas=present, of=str(serving))

    async def _carry_to_all(self, group: WorkerGroup, scene: Scene, wanted: int, notes: _Notes) -> Wish:
        """Write a count wherever it belongs, and return what the serving cluster is to have.

        Raises BridgeError or ApiError, the first one, after everything has been tried: what goes wrong with one
        object keeps no other from its count.
        """
        errors: list[BridgeError | ApiError] = []
        for obj in scene.objects:
            try:
                await self._carry(group, obj, wanted, notes)
            except (BridgeError, ApiError) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return wish(scene.serving, group_of(scene.serving, group), wanted, widen=group.widen)

    async def _carry(self, group: WorkerGroup, obj: RayObject, wanted: int, notes: _Notes) -> None:
        """Write a count to an object, where it has another one. Raises BridgeError or ApiError."""
        spec = group_of(obj, group)
        wished = wish(obj, spec, wanted, widen=group.widen)
        memory = notes.memories.get(obj.uid)
        if memory is not None and obj.generation < memory.generation:
            return  # the watch is behind what we have written
        now, before = time.monotonic(), memory
        memory = notes.memories[obj.uid] = looked(before, obj.generation, obj.count(spec), wished.count, now)
        if memory.until > now and obj.count(spec) != wished.count:
            notes.due = min(notes.due, memory.until)
            raise BridgeError(OTHER_WRITER, _contest(obj, group, wished.count, memory))
        if before is not None and memory.times > before.times:
            self._say(group, OTHER_WRITER, _contest(obj, group, wished.count, memory), "Warning")
        workers: list[Worker] = []
        load: Mapping[str, float] = {}
        if obj.kind is TargetKind.CLUSTER:
            workers = self._view.workers(obj.namespace, obj.name, group.group)
            load = self._loads(obj.namespace)
        operations = patch(obj, spec, wished, workers, load)
        if operations:
            changed = await self._client.patch_json(_RESOURCES[obj.kind], obj.namespace, obj.name, operations)
            notes.memories[obj.uid] = written(memory, changed["metadata"]["generation"], wished.count)
        if obj.count(spec) != wished.count:
            note = f"{obj.count_field} of group {group.group} of {obj}: {obj.count(spec)} → {wished.count}"
            log.info("count carried", group=_name(group), what=note)
            self._say(group, "Scaled", note, "Normal")

    async def _tell(self, group: WorkerGroup, counts: Counts | None, ready: Condition, limit: str = "") -> None:
        """Write the status, and say what is new in it."""
        limited = Condition(LIMITED, bool(limit), "GroupLimits" if limit else "WithinLimits", limit)
        for condition, good in ((ready, ready.holds), (limited, not limit)):
            if not good and condition.reason != reason(group, condition.kind):
                log.warning("group not carried", group=_name(group), reason=condition.reason, why=condition.message)
                self._say(group, condition.reason, condition.message, "Warning")
        conditions = (ready, limited) if ready.holds else (ready,)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = Status(counts, conditions).changed(group, now)
        if status is not None:
            await self._client.patch(RAY_WORKER_GROUPS, group.namespace, group.name, {"status": status}, "status")

    def _say(self, group: WorkerGroup, word: str, note: str, severity: Severity) -> None:
        involved = Involved(API_VERSION, KIND, group.namespace, group.name, group.uid)
        self._events.say(involved, word, note, severity)


def _name(group: WorkerGroup) -> str:
    return f"{group.namespace}/{group.name}"


def _contest(obj: RayObject, group: WorkerGroup, wanted: int, memory: Memory) -> str:
    writer, field = obj.other_writer or "somebody else", obj.count_field
    answer = f"nothing is written for {memory.pause_s:g}s" if memory.pause_s else "this is put right, once"
    return (
        f"{writer} has set {field} of group {group.group} of {obj} to {memory.count}, {wanted} is asked for here: "
        f"{answer}. Let only one write it: have whoever applies the manifest ignore {field}, and end other autoscalers "
        "of the group"
    )
