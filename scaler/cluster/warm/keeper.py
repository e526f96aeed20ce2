"""Keeps room on nodes as decisions want it: made, resized and taken away by one replica of the scaler, the leader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import structlog

from scaler.cluster.client import ApiClient
from scaler.cluster.errors import NOT_FOUND, ApiError
from scaler.cluster.events import EventRecorder
from scaler.cluster.model import Discovery, DiscoveryError, ScaledObject
from scaler.cluster.reflector import Key
from scaler.cluster.resources import CAPACITY_BUFFERS, group_path
from scaler.cluster.warm.objects import LABEL, Placeholders
from scaler.cluster.warm.shape import WarmError
from scaler.cluster.warm.template import find_shape
from scaler.cluster.warm.ways import Buffers, Keeping, PlaceholderPods, Way
from scaler.cluster.workload import target_of

log = structlog.get_logger(__name__)

_LOOK_S = 1.0
_AGAIN_S = 15.0
"""Between two looks at what was made, by which changes of the pod template and of others' doing are followed."""
_ASK_S = 60.0
"""Between two questions whether the cluster has CapacityBuffers."""

Wishes = Callable[[], Mapping[Key, int]]
"""For how many replicas there should be room, by ScaledObject; one that is missing is unknown."""


@dataclass(slots=True)
class _Kept:
    """What is kept for a ScaledObject."""

    replicas: int | None = None
    """None: something is there from before, nobody knows how much."""
    by: Keeping | None = None
    due: float = 0.0
    """When it is to be looked at again (monotonic)."""
    room: int = 0
    """Replicas that nodes have room for, as far as that is known."""
    trouble: str = ""


class WarmKeeper:
    """Makes room while `leads` says so. What it makes belongs to the ScaledObjects, and goes with them.

    `namespaces` limits where leftovers are looked for (empty: everywhere).
    """

    def __init__(
        self,
        client: ApiClient,
        discovery: Discovery,
        events: EventRecorder,
        wishes: Wishes,
        leads: Callable[[], bool],
        way: Way,
        made_with: Placeholders,
        namespaces: Collection[str] = (),
    ) -> None:
        self._client = client
        self._discovery = discovery
        self._events = events
        self._wishes = wishes
        self._leads = leads
        self._namespaces = namespaces
        ways: dict[Way, Keeping] = {
            Way.BUFFER: Buffers(client, made_with),
            Way.PLACEHOLDERS: PlaceholderPods(client, made_with),
        }
        self._ways = ways if way is Way.AUTO else {way: ways[way]}
        """Those that are allowed."""
        self._has_buffers: bool | None = None
        self._asked_at = float("-inf")
        self._scaled_objects: Mapping[Key, ScaledObject] | None = None
        """None until they have been seen."""
        self._kept: dict[Key, _Kept] = {}

    def show(self, scaled_objects: Sequence[ScaledObject]) -> None:
        """Take in the ScaledObjects that name this scaler, all of them."""
        self._scaled_objects = {(shown.namespace, shown.name): shown for shown in scaled_objects}

    def room(self, namespace: str, name: str) -> tuple[int, str]:
        """For how many of a ScaledObject's replicas there is room by now; and why there may be none, or empty."""
        kept = self._kept.get((namespace, name))
        return (kept.room, kept.trouble) if kept else (0, "")

    async def run(self) -> None:
        """Keep room until cancelled."""
        led = False
        while True:
            if not self._leads():
                self._kept.clear()
                led = False
            elif self._scaled_objects is not None:
                if not led:
                    await self._see_leftovers()
                    led = True
                await self._look(self._scaled_objects)
            await asyncio.sleep(_LOOK_S)

    async def _see_leftovers(self) -> None:
        """See what another leader has made, or this process before it was started anew."""
        try:
            for namespace in self._namespaces or ("",):
                for way in self._ways.values():
                    for item in (await self._client.list(way.made, namespace, labelSelector=LABEL))["items"]:
                        for owner in item["metadata"].get("ownerReferences") or ():
                            self._kept.setdefault((item["metadata"]["namespace"], owner["name"]), _Kept())
        except ApiError as error:
            log.warning("room that was made before is not seen", error=str(error))

    async def _look(self, scaled_objects: Mapping[Key, ScaledObject]) -> None:
        """Take up whatever is wanted otherwise, or was not looked at for long."""
        wishes, now = self._wishes(), time.monotonic()
        work = []
        for key in wishes.keys() | self._kept.keys():
            owner, kept = scaled_objects.get(key), self._kept.get(key)
            wish = 0 if owner is None or owner.paused else wishes.get(key)  # what is paused needs no room
            if wish is None or (wish == 0 and kept is None):
                continue
            if kept is None or now >= kept.due or (wish != kept.replicas and not kept.trouble):
                work.append(self._take_up(key, owner, wish))
        await asyncio.gather(*work)

    async def _take_up(self, key: Key, owner: ScaledObject | None, wish: int) -> None:
        kept = self._kept.setdefault(key, _Kept())
        kept.due = time.monotonic() + _AGAIN_S
        before, room, trouble = kept.trouble, 0, ""
        try:
            if owner is None or wish == 0:
                for way in self._ways.values():
                    await way.remove(key)
                del self._kept[key]
            else:
                room, trouble = await self._keep(key, owner, kept, wish)
        except (ApiError, DiscoveryError, WarmError) as error:
            trouble = str(error)
        except Exception:  # one target's fault must not end all others
            log.exception("no room made", scaled_object="/".join(key))
            trouble = "no room on nodes is made: see the scaler's log"
        kept.room, kept.trouble = room, trouble
        if trouble not in ("", before):
            log.warning("no room made", scaled_object="/".join(key), why=trouble)

    async def _keep(self, key: Key, owner: ScaledObject, kept: _Kept, wish: int) -> tuple[int, str]:
        """Have room for `wish` replicas; return for how many there is by now, and what may be wrong."""
        by = await self._way()
        pods = [pod.name for pod in self._discovery.workload(*key).pods]
        shape = await find_shape(self._client, target_of(owner), pods)
        if kept.by is not by:
            for other in self._ways.values():
                if other is not by:
                    await other.remove(key)
        room = await by.keep(owner, shape, wish * shape.pods)
        if (kept.replicas, kept.by) != (wish, by):
            log.info("room asked for", scaled_object="/".join(key), replicas=wish, by=by.words)
            note = f"room on nodes for {wish} more replica{'' if wish == 1 else 's'} is asked for by {by.words}"
            self._events.say(owner, "WarmReplicas", note)
        kept.replicas, kept.by = wish, by
        return room.pods // shape.pods, room.trouble

    async def _way(self) -> Keeping:
        """Return the way to go: of those that are allowed, the first that the cluster can."""
        if len(self._ways) == 1:
            return next(iter(self._ways.values()))
        if self._has_buffers is None or time.monotonic() - self._asked_at > _ASK_S:
            self._has_buffers = await self._served()
            self._asked_at = time.monotonic()
        return self._ways[Way.BUFFER if self._has_buffers else Way.PLACEHOLDERS]

    async def _served(self) -> bool:
        try:
            await self._client.read(group_path(CAPACITY_BUFFERS.group, CAPACITY_BUFFERS.version))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True
