"""Scale targets of any kind that has `/scale`: their objects are watched, and `/scale` is read when one changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import structlog

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.errors import NOT_FOUND, ApiError
from scaler.cluster.kinds import find_scalable
from scaler.cluster.model import DiscoveryError
from scaler.cluster.reflector import Key, Reflector
from scaler.cluster.resources import Resource
from scaler.cluster.scale import Scale, TargetRef, scale_of_subresource
from scaler.cluster.watches import Spawn, Watches

log = structlog.get_logger(__name__)

_READ_INTERVAL_S = 0.5
"""Between two reads of one `/scale`, however often its object changes."""
_RETRY_S = 5.0
"""After a kind could not be found or a `/scale` not be read."""


@dataclass(slots=True, eq=False)
class _Target:
    """One scale target: what its `/scale` said last, and the task that reads it."""

    users: int = 0
    scale: Scale | None = None
    error: str = "its /scale has not been read yet"
    right_until: float = float("-inf")
    """When its object changed after the last read (monotonic); infinite when it has not."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class CustomKind:
    """The scale targets of one custom kind; a `scale_watch.Kind`."""

    def __init__(
        self,
        client: ApiClient,
        api_version: str,
        kind: str,
        spawn: Spawn,
        on_change: Callable[[TargetRef], None],
        may_widen: bool,
    ) -> None:
        self._client = client
        self._api_version = api_version
        self._kind = kind
        self._spawn = spawn
        self._on_change = on_change
        self._may_widen = may_widen
        self._targets: dict[TargetRef, _Target] = {}
        self._resource: Resource | None = None
        self._watches: Watches[str] | None = None
        self._finding = asyncio.Lock()

    def add(self, ref: TargetRef) -> None:
        """Begin to keep a target up."""
        target = self._targets.setdefault(ref, _Target())
        target.users += 1
        if target.task is None:
            target.task = self._spawn(self._keep_up(ref, target))

    def remove(self, ref: TargetRef) -> None:
        """Say that one user less needs it."""
        target = self._targets[ref]
        target.users -= 1
        if target.users == 0 and target.task is not None:
            target.task.cancel()
            target.settled.set()
            del self._targets[ref]

    def scale(self, ref: TargetRef) -> Scale:
        """Return what `/scale` said last. Raises DiscoveryError."""
        target = self._targets[ref]
        if target.scale is None:
            raise DiscoveryError(target.error)
        return target.scale

    def alive_until(self, ref: TargetRef) -> float:
        """Return when the object changed after `/scale` was read; while it has not, what the watch of it says."""
        target = self._targets[ref]
        if self._watches is None:
            return target.right_until
        return min(target.right_until, self._watches[ref.namespace].alive_until())

    async def settled(self, ref: TargetRef) -> None:
        """Wait until `/scale` has been read or could not be."""
        await self._targets[ref].settled.wait()

    async def resource(self) -> Resource:
        """Return the kind's resource. Raises DiscoveryError or ApiError."""
        async with self._finding:
            if self._resource is None:
                self._resource = await find_scalable(self._client, self._api_version, self._kind)
            return self._resource

    async def _keep_up(self, ref: TargetRef, target: _Target) -> None:
        """Read `/scale` whenever the object has changed, until cancelled."""
        watches = await self._watch(ref, target)
        watches.acquire(ref.namespace)
        try:
            while True:
                target.changed.clear()
                await self._read(ref, target, watches[ref.namespace])
                await asyncio.sleep(_RETRY_S if target.error else _READ_INTERVAL_S)
                if not target.error:
                    await target.changed.wait()
        finally:
            watches.release(ref.namespace)

    async def _watch(self, ref: TargetRef, target: _Target) -> Watches[str]:
        """Find the resource, however long that takes, and return the watches of its objects."""
        while True:
            try:
                resource = await self.resource()
            except (DiscoveryError, ApiError) as error:
                self._note(ref, target, None, str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            if self._watches is None:
                make = partial(self._reflector, resource)
                self._watches = Watches(make, self._spawn, may_widen=self._may_widen)
            return self._watches

    def _reflector(self, resource: Resource, namespace: str) -> Reflector[str]:
        return Reflector(self._client, resource, _version, namespace=namespace, on_change=self._object_changed)

    def _object_changed(self, key: Key, _before: str | None, _after: str | None) -> None:
        target = self._targets.get(TargetRef(key[0], self._api_version, self._kind, key[1]))
        if target is not None:
            target.changed.set()
            target.right_until = min(target.right_until, time.monotonic())

    async def _read(self, ref: TargetRef, target: _Target, objects: Reflector[str]) -> None:
        await objects.settled.wait()
        if not objects.synced.is_set():
            self._note(ref, target, None, objects.error or f"the objects of {ref} are not listed yet")
            return
        if (ref.namespace, ref.name) not in objects.items:
            self._note(ref, target, None, ref.missing)
            return
        began = time.monotonic()
        try:
            read = await self._client.get(await self.resource(), ref.namespace, ref.name, "scale")
            scale = scale_of_subresource(read)
        except ApiError as error:
            gone = error.status == NOT_FOUND
            self._note(ref, target, None if gone else target.scale, ref.missing if gone else str(error))
        except (KeyError, TypeError, ValueError) as error:
            self._note(ref, target, None, f"the /scale of {ref} cannot be used: {error}")
        else:
            target.right_until = began if target.changed.is_set() else float("inf")
            self._note(ref, target, scale, "")

    def _note(self, ref: TargetRef, target: _Target, scale: Scale | None, error: str) -> None:
        if error and error != target.error:
            log.warning("scale target not seen", target=str(ref), error=error)
        changed = (scale, error) != (target.scale, target.error)
        target.scale, target.error = scale, error
        target.settled.set()
        if changed:
            self._on_change(ref)


def _version(item: Json, _before: str | None) -> str:
    """Nothing of the object is kept but what tells that it has changed."""
    return str(item["metadata"]["resourceVersion"])
