"""Every target's workload, from memory: the ScaledObject, its scale target, pods and HPA, joined as watches tell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from scaler.cluster.client import ApiClient
from scaler.cluster.hpa import Hpa, parse_hpa
from scaler.cluster.membership import Membership
from scaler.cluster.model import DiscoveryError, Pod, ScaledObject, Workload
from scaler.cluster.nodes import Node, devices_lacking, name_late_nodes, parse_node
from scaler.cluster.pods import parse_pod
from scaler.cluster.reflector import Key, Reflector
from scaler.cluster.resources import HPAS, NODES, PODS, SCALED_OBJECTS
from scaler.cluster.scale import TargetRef, patch_scale
from scaler.cluster.scale_watch import Kinds
from scaler.cluster.scaled_objects import IsOurs, parse_scaled_object
from scaler.cluster.watches import Watches
from scaler.cluster.workload import assemble, target_of, without_selector

FORGOTTEN_AFTER_S = 600.0
"""How long a ScaledObject that only calls name is kept up without one."""
_NEWS_AFTER_S = 2.0
"""A cluster that is not seen for a moment, as when a watch is opened anew, is not worth a warning."""
_SOUGHT_AGAIN_AFTER_S = 60.0
"""A ScaledObject that a call names and the watch does not show is sought by a list, but not on every call."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A ScaledObject that is kept up, and its workload as of the last change."""

    scaled_object: ScaledObject
    ref: TargetRef
    asked_at: float
    """When its workload was last asked for (monotonic)."""
    workload: Workload | None = None
    """None when something has changed since it was put together."""


class KubernetesDiscovery:
    """The workloads of a cluster, as `model.Discovery`. Only `run` and `patch_scale` wait.

    `ours` tells which triggers name this scaler. `namespaces` limits where ScaledObjects are looked for (empty:
    everywhere). Pods, scale targets and HPAs are watched only where there are targets, nodes only once pods wait for a
    device that no node has, and not within `namespaces`: nodes lie in none. `on_change` is called when
    `scaled_objects()` has changed.
    """

    def __init__(
        self,
        client: ApiClient,
        ours: IsOurs,
        *,
        namespaces: Collection[str] = (),
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self.listed = asyncio.Event()
        """Set once the ScaledObjects that were there at the start have been seen or refused."""
        self.synced = asyncio.Event()
        """Set once everything that was there at the start has been seen or refused."""
        self._client = client
        self._namespaces = frozenset(namespaces)
        may_widen = not self._namespaces
        self._on_change = on_change
        self._ours: dict[Key, ScaledObject] = {}
        self._entries: dict[Key, _Entry] = {}
        self._by_ref: dict[TargetRef, set[Key]] = {}
        self._hpas: dict[Key, Hpa] = {}
        """By ScaledObject."""
        self._sought: dict[Key, float] = {}
        """When ScaledObjects that are not there were last sought (monotonic)."""
        self._telling = False
        self._group: asyncio.TaskGroup | None = None
        self._nodes: Reflector[Node] | None = None
        self._waiting: set[Key] = set()
        """ScaledObjects whose pods wait for a device."""
        self._membership: Membership[Key] = Membership(self._stir)
        self._kinds = Kinds(client, self._spawn, self._scale_changed, may_widen=may_widen)
        self._pods = Watches(
            lambda namespace: Reflector(
                client, PODS, parse_pod, namespace=namespace, on_change=self._membership.update
            ),
            self._spawn,
            may_widen=may_widen,
        )
        self._hpa_watches = Watches(
            lambda namespace: Reflector(client, HPAS, parse_hpa, namespace=namespace, on_change=self._hpa_changed),
            self._spawn,
            may_widen=may_widen,
        )
        self._scaled_objects = {
            namespace: Reflector(
                client,
                SCALED_OBJECTS,
                lambda item, _before: parse_scaled_object(item, ours),
                namespace=namespace,
                on_change=self._scaled_object_changed,
            )
            for namespace in self._namespaces or ("",)
        }

    # What targets ask

    def workload(self, namespace: str, name: str) -> Workload:
        """Return the workload behind ScaledObject `namespace`/`name`, from memory. Raises DiscoveryError."""
        entry = self._entry((namespace, name))
        entry.asked_at = time.monotonic()
        if entry.workload is None:
            entry.workload = self._assemble(entry)
        age, why = self._age(entry)
        warnings = entry.workload.warnings
        if age > _NEWS_AFTER_S:
            warnings += (f"the cluster has not been seen for {age:.0f}s: {why or 'its watches are being opened anew'}",)
        return replace(entry.workload, seen_at=time.time() - age, warnings=warnings)

    def scaled_objects(self) -> list[ScaledObject]:
        """Return the ScaledObjects that name this scaler."""
        return list(self._ours.values())

    async def patch_scale(self, namespace: str, name: str, replicas: int) -> None:
        """Ask for `replicas` of the target of ScaledObject `namespace`/`name` at once, past KEDA and its HPA.

        Raises DiscoveryError or ApiError.
        """
        ref = self._entry((namespace, name)).ref
        await patch_scale(self._client, await self._kinds.of(ref).resource(), namespace, ref.name, replicas)

    # What keeps it up

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for reflector in self._scaled_objects.values():
                group.create_task(reflector.run())
            for reflector in self._scaled_objects.values():
                await reflector.settled.wait()
            self.listed.set()
            for entry in list(self._entries.values()):
                await self._settled(entry)
            self.synced.set()
            while True:
                await asyncio.sleep(_SOUGHT_AGAIN_AFTER_S)
                self._forget()

    def _spawn(self, task: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._group is None:
            raise RuntimeError("nothing is watched before run()")
        return self._group.create_task(task)

    async def _settled(self, entry: _Entry) -> None:
        namespace = entry.ref.namespace
        if entry is not self._entries.get((namespace, entry.scaled_object.name)):
            return  # it went while others were waited for
        await asyncio.gather(
            self._pods[namespace].settled.wait(),
            self._hpa_watches[namespace].settled.wait(),
            self._kinds.of(entry.ref).settled(entry.ref),
        )

    def _forget(self) -> None:
        """Let go of what only calls named, when these have stopped."""
        now = time.monotonic()
        for key, entry in list(self._entries.items()):
            if key not in self._ours and now - entry.asked_at > FORGOTTEN_AFTER_S:
                self._end(key)
        self._sought = {key: at for key, at in self._sought.items() if now - at < _SOUGHT_AGAIN_AFTER_S}

    # ScaledObjects come and go

    def _entry(self, key: Key) -> _Entry:
        """Return the entry of a ScaledObject, and begin it when only a call names this scaler for it."""
        if (known := self._entries.get(key)) is not None:
            return known
        namespace, name = key
        reflector = self._scaled_objects.get(namespace) or self._scaled_objects.get("")
        if reflector is None:
            served = ", ".join(sorted(self._namespaces))
            raise DiscoveryError(f"namespace {namespace} is not served: this server serves only {served}")
        if not reflector.synced.is_set():
            raise DiscoveryError(reflector.error or "the ScaledObjects are not listed yet")
        scaled_object = reflector.items.get(key)
        if scaled_object is not None:
            return self._begin(key, scaled_object)
        now = time.monotonic()
        if now - self._sought.get(key, float("-inf")) > _SOUGHT_AGAIN_AFTER_S:
            self._sought[key] = now
            reflector.relist()
        raise DiscoveryError(f"there is no ScaledObject {namespace}/{name} with an external trigger")

    def _scaled_object_changed(self, key: Key, _before: ScaledObject | None, after: ScaledObject | None) -> None:
        was_ours = self._ours.pop(key, None)
        ours = after if after is not None and after.triggers else None
        if ours is not None:
            self._ours[key] = ours
        if ours != was_ours:
            self._tell()
        entry = self._entries.get(key)
        if after is None:
            self._end(key)
        elif entry is not None and entry.ref == target_of(after):
            entry.scaled_object, entry.workload = after, None
        elif entry is not None or ours is not None:
            self._begin(key, after)
            if entry is not None:  # only now, so that what both need is watched without a break
                self._release(key, entry.ref)

    def _begin(self, key: Key, scaled_object: ScaledObject) -> _Entry:
        ref = target_of(scaled_object)
        entry = self._entries[key] = _Entry(scaled_object, ref, time.monotonic())
        self._by_ref.setdefault(ref, set()).add(key)
        self._pods.acquire(ref.namespace)
        self._hpa_watches.acquire(ref.namespace)
        self._kinds.of(ref).add(ref)
        self._scale_changed(ref)
        return entry

    def _end(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._waiting.discard(key)
            self._membership.unfollow(key)
            self._release(key, entry.ref)

    def _release(self, key: Key, ref: TargetRef) -> None:
        self._by_ref[ref].discard(key)
        if not self._by_ref[ref]:
            del self._by_ref[ref]
        self._kinds.of(ref).remove(ref)
        self._hpa_watches.release(ref.namespace)
        self._pods.release(ref.namespace)

    def _tell(self) -> None:
        """Call `on_change` once for all changes of this moment."""
        if self._on_change is None or self._telling:
            return
        self._telling = True

        def tell() -> None:
            self._telling = False
            if self._on_change is not None:
                self._on_change()

        asyncio.get_running_loop().call_soon(tell)

    # Scale targets, pods and HPAs change

    def _scale_changed(self, ref: TargetRef) -> None:
        for key in self._by_ref.get(ref, ()):
            try:
                selector = self._kinds.of(ref).scale(ref).selector
            except DiscoveryError:
                selector = None
            if selector is None:
                self._membership.unfollow(key)
            else:
                self._membership.follow(key, ref.namespace, selector)
            self._stir(key)

    def _hpa_changed(self, key: Key, before: Hpa | None, after: Hpa | None) -> None:
        if before is not None:
            self._hpas.pop((key[0], before.scaled_object), None)
            self._stir((key[0], before.scaled_object))
        if after is not None:
            self._hpas[key[0], after.scaled_object] = after
            self._stir((key[0], after.scaled_object))

    def _stir(self, key: Key) -> None:
        """Have the workload put together anew when it is next asked for."""
        if (entry := self._entries.get(key)) is not None:
            entry.workload = None

    # The workload

    def _assemble(self, entry: _Entry) -> Workload:
        scaled_object, ref = entry.scaled_object, entry.ref
        key = scaled_object.namespace, scaled_object.name
        scale = self._kinds.of(ref).scale(ref)
        if scale.selector is None:
            raise without_selector(ref)
        pods, hpas = self._pods[ref.namespace], self._hpa_watches[ref.namespace]
        if not pods.synced.is_set():
            raise DiscoveryError(pods.error or f"the pods of {ref} are not listed yet")
        if not hpas.settled.is_set():
            raise DiscoveryError(hpas.error or f"the HPAs of namespace {ref.namespace} are not listed yet")
        hpa_error = "" if hpas.synced.is_set() else hpas.error
        return assemble(scaled_object, scale, self._members(key), self._hpas.get(key), hpa_error)

    def _members(self, key: Key) -> tuple[Pod, ...]:
        """Return the pods of a target; those that wait for a device are told of nodes that came without it."""
        pods = self._membership.pods(key)
        if not any(map(devices_lacking, pods)):
            self._waiting.discard(key)
            return pods
        self._waiting.add(key)
        if self._nodes is None and not self._namespaces and self._group is not None:
            self._nodes = Reflector(self._client, NODES, parse_node, on_change=self._node_changed)
            self._spawn(self._nodes.run())
        return name_late_nodes(pods, self._nodes.items.values() if self._nodes else ())

    def _node_changed(self, _key: Key, _before: Node | None, _after: Node | None) -> None:
        for key in self._waiting:
            self._stir(key)

    def _age(self, entry: _Entry) -> tuple[float, str]:
        """For how many seconds something that a workload is made of has not been seen, and why."""
        namespace, now = entry.ref.namespace, time.monotonic()
        scaled_objects = self._scaled_objects.get(namespace) or self._scaled_objects[""]
        pods, hpas = self._pods[namespace], self._hpa_watches[namespace]
        seen = min(
            scaled_objects.alive_until(),
            self._kinds.of(entry.ref).alive_until(entry.ref),
            pods.alive_until(),
            hpas.alive_until() if hpas.synced.is_set() else now,  # else a warning speaks of it
        )
        return max(0.0, now - seen), pods.error or scaled_objects.error or hpas.error
