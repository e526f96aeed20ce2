"""Writes a RayWorkerGroup's count wherever it belongs: to KubeRay's objects, and to Ray Serve where asked to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from scaler.cluster.client import ApiClient
from scaler.cluster.errors import ApiError
from scaler.cluster.ray.carry import Load, Wish, patch, wish
from scaler.cluster.ray.contest import Memory, looked, written
from scaler.cluster.ray.model import BridgeError, GroupSpec, RayObject, ServeRef, TargetKind, Worker, WorkerGroup
from scaler.cluster.ray.serve import ServeApi, ServeState
from scaler.cluster.ray.status import Counts
from scaler.cluster.ray.victims import replicas
from scaler.cluster.ray.view import Scene, View, group_of
from scaler.cluster.resources import RAY_CLUSTERS, RAY_SERVICES, RAY_WORKER_GROUPS

log = structlog.get_logger(__name__)

Loads = Callable[[str], Mapping[str, float]]
"""The requests that are in each pod of a namespace, as far as they are known."""
Say = Callable[[WorkerGroup, str, str], None]
"""Has an event shown on a RayWorkerGroup: reason and note."""

OTHER_WRITER = "OtherWriter"
SCALED = "Scaled"
_SERVE_LOOK_S = 2.0
"""Serve forgets its target when the application changes, so it is looked at often."""
_RESOURCES = {TargetKind.CLUSTER: RAY_CLUSTERS, TargetKind.SERVICE: RAY_SERVICES}


@dataclass(slots=True)
class Notes:
    """What is remembered of a RayWorkerGroup while this process leads."""

    memories: dict[str, Memory] = field(default_factory=dict)
    """By the uid of the object that is written to."""
    races: int = 0
    """How often in a row somebody else was faster."""
    due: float = float("inf")
    """When it is to be looked at again though nothing has changed (monotonic)."""
    busy: bool = False
    """It is being taken up now."""
    again: bool = False
    """Something has changed since that began."""

    def look_again(self, after_s: float) -> None:
        """Be due after so many seconds, or before."""
        self.due = min(self.due, time.monotonic() + after_s)


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of it."""

    wish: Wish
    counts: Counts


class Carrier:
    """Carries counts. Every method raises BridgeError or ApiError."""

    def __init__(self, client: ApiClient, view: View, serve: ServeApi, loads: Loads, say: Say) -> None:
        self._client = client
        self._view = view
        self._serve = serve
        self._loads = loads
        self._say = say

    async def adopt(self, group: WorkerGroup, scene: Scene) -> None:
        """Begin with the count that is there. Before that there is no selector, so nobody asks for another one."""
        serving = scene.serving
        spec = group_of(serving, group)
        if group.serve is not None:
            present = (await self._serve.look(serving, group.serve)).target
        elif serving.autoscaled:
            present = spec.minimum
        else:
            present = min(max(spec.replicas, spec.minimum), spec.maximum)
        body = {"metadata": {"uid": group.uid}, "spec": {"replicas": present}}
        await self._client.patch(RAY_WORKER_GROUPS, group.namespace, group.name, body)
        log.info("count adopted", group=str(group), replicas=present, of=str(serving))

    async def carry(self, group: WorkerGroup, scene: Scene, wanted: int, counts: Counts, notes: Notes) -> Carried:
        """Write a count to every object of the scene. `counts` are those of the pods.

        The first error is raised after everything has been tried: what goes wrong with one object keeps no other
        from its count.
        """
        errors: list[BridgeError | ApiError] = []
        for obj in scene.objects:
            try:
                wished = wish(obj, group_of(obj, group), wanted, widen=group.widen)
                state = await self._carry_to(group, obj, wished, notes, serves=obj is scene.serving)
                if state is not None:
                    counts = replace(counts, replicas=state.replicas, ready=state.running)
            except (BridgeError, ApiError) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        serving = scene.serving
        return Carried(wish(serving, group_of(serving, group), wanted, widen=group.widen), counts)

    async def _carry_to(
        self, group: WorkerGroup, obj: RayObject, wished: Wish, notes: Notes, *, serves: bool
    ) -> ServeState | None:
        """Write to one object; return what Serve has, where that is asked and this is the cluster that `serves`."""
        if group.serve is not None:
            notes.look_again(_SERVE_LOOK_S)
            if serves:
                state = await self._keep_target(group, group.serve, obj, wished)
                await self._make_room(group, obj, wished, state.pods, notes)
                return state
            if obj.kind is TargetKind.CLUSTER:
                with suppress(BridgeError):  # the one to come: nothing may be deployed there yet
                    await self._keep_target(group, group.serve, obj, wished)
            if obj.autoscaled:
                return None
        await self._write(group, obj, wished, notes)
        return None

    async def _keep_target(self, group: WorkerGroup, serve: ServeRef, cluster: RayObject, wished: Wish) -> ServeState:
        """See to it that a count is Serve's target, and return what Serve has."""
        state = await self._serve.look(cluster, serve)
        if state.target != wished.count:
            await self._serve.scale(cluster, serve, wished.count)
            self._note(group, f"target of {serve} of {cluster}", state.target, wished.count)
        return state

    async def _make_room(
        self, group: WorkerGroup, cluster: RayObject, wished: Wish, used: Collection[str], notes: Notes
    ) -> None:
        """Give Serve the workers that it needs, and keep those that are `used`; Ray's autoscaler does so by itself."""
        if cluster.autoscaled:
            return
        present = replicas(self._workers(group, cluster), group_of(cluster, group).hosts)
        needed = sum(replica.stays and not replica.names.isdisjoint(used) for replica in present)
        load = {name: math.inf if name in used else 0.0 for replica in present for name in replica.names}
        await self._write(group, cluster, replace(wished, count=max(wished.count, needed)), notes, lambda: load)

    async def _write(
        self, group: WorkerGroup, obj: RayObject, wished: Wish, notes: Notes, load: Load | None = None
    ) -> None:
        """Write a count to an object, where it has another one. `load` is for the choice of those that go."""
        spec = group_of(obj, group)
        present, before, now = obj.count(spec), notes.memories.get(obj.uid), time.monotonic()
        if before is not None and obj.generation < before.generation:
            return  # the watch is behind what we have written
        memory = notes.memories[obj.uid] = looked(before, obj.generation, present, wished.count, now)
        if memory.until > now and present != wished.count:
            notes.look_again(memory.until - now)
            raise BridgeError(OTHER_WRITER, _contest(obj, spec, wished.count, memory))
        if before is not None and memory.times > before.times:
            self._say(group, OTHER_WRITER, _contest(obj, spec, wished.count, memory))
        load = load or (lambda: self._loads(obj.namespace))
        operations = patch(obj, spec, wished, self._workers(group, obj), load)
        if operations:
            changed = await self._client.patch_json(_RESOURCES[obj.kind], obj.namespace, obj.name, operations)
            notes.memories[obj.uid] = written(memory, changed["metadata"]["generation"], wished.count)
        self._note(group, f"{obj.count_field} of group {spec.name} of {obj}", present, wished.count)

    def _workers(self, group: WorkerGroup, obj: RayObject) -> list[Worker]:
        return self._view.workers(obj.namespace, obj.name, group.group) if obj.kind is TargetKind.CLUSTER else []

    def _note(self, group: WorkerGroup, what: str, before: int, after: int) -> None:
        if before != after:
            log.info("count carried", group=str(group), what=what, before=before, after=after)
            self._say(group, SCALED, f"{what}: {before} → {after}")


def _contest(obj: RayObject, spec: GroupSpec, wanted: int, memory: Memory) -> str:
    writer, field = obj.other_writer or "somebody else", obj.count_field
    answer = f"nothing is written for {memory.pause_s:g}s" if memory.pause_s else "this is put right, once"
    return (
        f"{writer} has set {field} of group {spec.name} of {obj} to {memory.count}, {wanted} is asked for here: "
        f"{answer}. Let only one write it: have whoever applies the manifest ignore {field}, and end other autoscalers "
        "of the group"
    )
