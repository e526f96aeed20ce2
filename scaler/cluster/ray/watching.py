"""RayWorkerGroups, KubeRay's objects and workers' pods, kept up by watches in the namespaces that are served."""

from __future__ import annotations

from asyncio import TaskGroup
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, TypeVar

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.pods import LabelledPod, parse_pod
from scaler.cluster.ray.model import (
    CLUSTER_LABEL,
    GROUP_LABEL,
    BridgeError,
    RayObject,
    TargetKind,
    Worker,
    WorkerGroup,
    parse_cluster,
    parse_service,
    parse_worker,
    parse_worker_group,
)
from scaler.cluster.reflector import Key, Reflector
from scaler.cluster.resources import PODS, RAY_CLUSTERS, RAY_SERVICES, RAY_WORKER_GROUPS, Resource

T = TypeVar("T")


class _Collection(Generic[T]):
    """The objects of one resource in the namespaces that are served."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        parse: Callable[[Json, T | None], T | None],
        namespaces: Collection[str],
        on_change: Callable[[Key, T | None, T | None], None],
        labels: str = "",
    ) -> None:
        self.reflectors = {
            namespace: Reflector(client, resource, parse, namespace=namespace, on_change=on_change, labels=labels)
            for namespace in namespaces or ("",)
        }

    def __iter__(self) -> Iterator[T]:
        return (item for reflector in self.reflectors.values() for item in reflector.items.values())

    def get(self, key: Key) -> T | None:
        """Return an object, None where it is not there. Raises BridgeError where that cannot be told."""
        reflector = self.reflectors.get(key[0]) or self.reflectors.get("")
        if reflector is None or not reflector.synced.is_set():
            raise BridgeError("NotSeen", reflector.error if reflector else f"namespace {key[0]} is not served")
        return reflector.items.get(key)


class Watching:
    """A `view.View` of the cluster. `stir` is called with the namespace of whatever changes."""

    def __init__(self, client: ApiClient, namespaces: Collection[str], stir: Callable[[str], None]) -> None:
        def changed(key: Key, _before: object, _after: object) -> None:
            stir(key[0])

        self.groups = _Collection[WorkerGroup](client, RAY_WORKER_GROUPS, parse_worker_group, namespaces, changed)
        self._objects = {
            TargetKind.CLUSTER: _Collection[RayObject](client, RAY_CLUSTERS, parse_cluster, namespaces, changed),
            TargetKind.SERVICE: _Collection[RayObject](client, RAY_SERVICES, parse_service, namespaces, changed),
        }
        self._pods = _Collection[LabelledPod](
            client, PODS, parse_pod, namespaces, self._pod_changed, labels="ray.io/node-type=worker"
        )
        self._by_group: dict[tuple[str, str, str], dict[str, LabelledPod]] = {}
        self._stir = stir

    async def start(self, group: TaskGroup) -> None:
        """Begin to watch, and return once everything has been seen or refused."""
        collections: tuple[_Collection[Any], ...] = (self.groups, *self._objects.values(), self._pods)
        reflectors = [reflector for collection in collections for reflector in collection.reflectors.values()]
        for reflector in reflectors:
            group.create_task(reflector.run())
        for reflector in reflectors:
            await reflector.settled.wait()

    def find(self, kind: TargetKind, namespace: str, name: str) -> RayObject | None:
        """See View."""
        found = self._objects[kind].get((namespace, name))
        return None if found is None or found.going else found

    def workers(self, namespace: str, cluster: str, group: str) -> list[Worker]:
        """See View. Raises BridgeError where the pods are not seen."""
        self._pods.get((namespace, ""))
        return [parse_worker(pod) for pod in self._by_group.get((namespace, cluster, group), {}).values()]

    def _pod_changed(self, key: Key, before: LabelledPod | None, after: LabelledPod | None) -> None:
        namespace, name = key
        if before is not None:
            place = _place(namespace, before)
            self._by_group[place].pop(name)
            if not self._by_group[place]:
                del self._by_group[place]
        if after is not None:
            self._by_group.setdefault(_place(namespace, after), {})[name] = after
        self._stir(namespace)


def _place(namespace: str, pod: LabelledPod) -> tuple[str, str, str]:
    return namespace, pod.labels.get(CLUSTER_LABEL, ""), pod.labels.get(GROUP_LABEL, "")
