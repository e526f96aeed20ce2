"""Scale targets kept up to date, each kind in its own way: what discovery asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scaler.cluster.client import ApiClient
from scaler.cluster.custom_scale import CustomKind
from scaler.cluster.model import DiscoveryError
from scaler.cluster.reflector import Key, Reflector
from scaler.cluster.resources import Resource
from scaler.cluster.scale import Scale, TargetRef, built_in, scale_of_workload
from scaler.cluster.watches import Spawn, Watches

OnChange = Callable[[TargetRef], None]


class Kind(Protocol):
    """The scale targets of one kind. All but `settled` answer from memory."""

    def add(self, ref: TargetRef) -> None:
        """Begin to keep a target up, once for each user."""
        ...

    def remove(self, ref: TargetRef) -> None:
        """Say that one user less needs it."""
        ...

    def scale(self, ref: TargetRef) -> Scale:
        """Return what is known of an added target. Raises DiscoveryError."""
        ...

    def alive_until(self, ref: TargetRef) -> float:
        """Return the monotonic time until which that is known to be right."""
        ...

    async def settled(self, ref: TargetRef) -> None:
        """Wait until the target has been seen, or refused."""
        ...

    async def resource(self) -> Resource:
        """Return the API's name of the kind. Raises DiscoveryError or ApiError."""
        ...


class BuiltInKind:
    """Deployments, StatefulSets or ReplicaSets: the watch shows everything."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        like: TargetRef,
        spawn: Spawn,
        on_change: OnChange,
        may_widen: bool,
    ) -> None:
        self._resource = resource

        def changed(key: Key, _before: Scale | None, _after: Scale | None) -> None:
            on_change(TargetRef(key[0], like.api_version, like.kind, key[1]))

        self._watches = Watches(
            lambda namespace: Reflector(client, resource, scale_of_workload, namespace=namespace, on_change=changed),
            spawn,
            may_widen=may_widen,
        )

    def add(self, ref: TargetRef) -> None:
        """See Kind."""
        self._watches.acquire(ref.namespace)

    def remove(self, ref: TargetRef) -> None:
        """See Kind."""
        self._watches.release(ref.namespace)

    def scale(self, ref: TargetRef) -> Scale:
        """See Kind."""
        reflector = self._watches[ref.namespace]
        found = reflector.items.get((ref.namespace, ref.name))
        if found is not None:
            return found
        if not reflector.synced.is_set():
            raise DiscoveryError(reflector.error or f"the {self._resource} are not listed yet")
        raise DiscoveryError(ref.missing)

    def alive_until(self, ref: TargetRef) -> float:
        """See Kind."""
        return self._watches[ref.namespace].alive_until()

    async def settled(self, ref: TargetRef) -> None:
        """See Kind."""
        await self._watches[ref.namespace].settled.wait()

    async def resource(self) -> Resource:
        """See Kind."""
        return self._resource


class Kinds:
    """The kinds in use, by the apiVersion and kind of a `scaleTargetRef`."""

    def __init__(self, client: ApiClient, spawn: Spawn, on_change: OnChange, *, may_widen: bool) -> None:
        self._client = client
        self._spawn = spawn
        self._on_change = on_change
        self._may_widen = may_widen
        self._kinds: dict[tuple[str, str], Kind] = {}

    def of(self, ref: TargetRef) -> Kind:
        """Return the kind of a target."""
        key = ref.api_version, ref.kind
        if key not in self._kinds:
            self._kinds[key] = self._make(ref)
        return self._kinds[key]

    def _make(self, ref: TargetRef) -> Kind:
        resource = built_in(ref.api_version, ref.kind)
        if resource is None:
            return CustomKind(self._client, ref.api_version, ref.kind, self._spawn, self._on_change, self._may_widen)
        return BuiltInKind(self._client, resource, ref, self._spawn, self._on_change, self._may_widen)
