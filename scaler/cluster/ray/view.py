"""What a RayWorkerGroup stands for at this moment: the objects to write to, and the cluster whose pods count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from scaler.cluster.model import Phase
from scaler.cluster.ray.model import (
    CLUSTER_LABEL,
    GROUP_LABEL,
    HOST_LABEL,
    BridgeError,
    GroupSpec,
    RayObject,
    TargetKind,
    Worker,
    WorkerGroup,
)
from scaler.cluster.ray.status import Counts
from scaler.cluster.ray.victims import replicas


class View(Protocol):
    """The cluster as the watches show it."""

    def find(self, kind: TargetKind, namespace: str, name: str) -> RayObject | None:
        """Return an object that is there and not being deleted. Raises BridgeError where it cannot be told."""
        ...

    def workers(self, namespace: str, cluster: str, group: str) -> list[Worker]:
        """Return the pods of a worker group."""
        ...


@dataclass(frozen=True, slots=True)
class Scene:
    """A RayWorkerGroup's objects. `serving` is the RayCluster whose pods count."""

    serving: RayObject
    objects: tuple[RayObject, ...]
    """Those to write to, in this order."""


def look(group: WorkerGroup, view: View) -> Scene:
    """Find the objects of a RayWorkerGroup. Raises BridgeError that says what is missing.

    A RayService passes a change of its counts on to no cluster that is there already, so each is written to: the
    RayService first, lest a cluster be made in between.
    """
    found = view.find(group.kind, group.namespace, group.target)
    if found is None:
        raise BridgeError(
            f"{group.kind}NotFound",
            f"there is no {group.kind} {group.target} in namespace {group.namespace}: create it, or correct targetRef",
        )
    clusters = [found] if found.kind is TargetKind.CLUSTER else list(_clusters(found, view))
    if not clusters:
        raise BridgeError(
            "NoCluster",
            f"{found} has no RayCluster yet: see its conditions (kubectl describe rayservice {found.name})",
        )
    serving = clusters[0]
    _check(serving, group)
    objects = clusters if found.kind is TargetKind.CLUSTER else [found, *clusters]
    return Scene(serving, tuple(obj for obj in objects if group.group in obj.groups))


def group_of(obj: RayObject, group: WorkerGroup) -> GroupSpec:
    """Return the worker group that is meant, which `look` has found."""
    return obj.groups[group.group]


def count(group: WorkerGroup, serving: RayObject, workers: list[Worker]) -> Counts:
    """Count the replicas that are there, without those on their way out, as a Deployment does."""
    hosts = group_of(serving, group).hosts
    staying = [r for r in replicas(workers, hosts) if r.stays]
    return Counts(
        cluster=serving.name,
        selector=_selector(serving.name, group.group, hosts, workers),
        replicas=len(staying),
        ready=sum(all(worker.phase is Phase.READY for worker in replica.workers) for replica in staying),
    )


def _selector(cluster: str, group: str, hosts: int, workers: list[Worker]) -> str:
    """Select one pod for each replica: whoever reads the pods takes each of them for a replica.

    Empty where KubeRay does not say which pod is which, lest a replica be taken for several.
    """
    selector = f"{CLUSTER_LABEL}={cluster},{GROUP_LABEL}={group}"
    if hosts == 1:
        return selector
    return f"{selector},{HOST_LABEL}=0" if all(worker.replica for worker in workers) else ""


def _clusters(service: RayObject, view: View) -> Iterator[RayObject]:
    """The clusters of a RayService, the one that serves first."""
    for name in (service.active, service.pending):
        cluster = view.find(TargetKind.CLUSTER, service.namespace, name) if name else None
        if cluster is not None:
            yield cluster


def _check(serving: RayObject, group: WorkerGroup) -> None:
    spec = serving.groups.get(group.group)
    if spec is None:
        known = ", ".join(serving.groups) or "none"
        raise BridgeError("GroupNotFound", f"{serving} has no worker group {group.group}; it has {known}")
    if serving.suspended or spec.suspended:
        what = str(serving) if serving.suspended else f"group {spec.name} of {serving}"
        raise BridgeError("Suspended", f"{what} is suspended: set suspend to false to have workers")
