"""From a wanted count and what is there to one JSON patch of a RayCluster or RayService."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaler.cluster.ray.model import BridgeError, GroupSpec, RayObject, TargetKind, Worker
from scaler.cluster.ray.victims import choose, replicas

Operation = Mapping[str, Any]
"""One of a JSON patch (RFC 6902)."""
Load = Callable[[], Mapping[str, float]]
"""Gives the requests in each pod; asked only where some have to go."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a group is to have. `limit` says why that is another count than the wanted one; empty where it is not."""

    count: int
    minimum: int
    maximum: int
    limit: str = ""


def wish(obj: RayObject, group: GroupSpec, wanted: int, *, widen: bool) -> Wish:
    """Fit a wanted count into the group's own limits, or with `widen` the limits to the count.

    Raises BridgeError where the limits exclude every count.
    """
    # Under Ray's autoscaler minReplicas is the count itself.
    minimum = 0 if obj.autoscaled else group.minimum
    if widen:
        return Wish(wanted, min(group.minimum, wanted), max(group.maximum, wanted))
    if minimum > group.maximum:
        raise BridgeError(
            "LimitsExcludeEveryCount",
            f"group {group.name} of {obj} has minReplicas {minimum} above maxReplicas {group.maximum}: correct them",
        )
    if wanted > group.maximum:
        limit = f"above maxReplicas {group.maximum}"
    elif wanted < minimum:
        limit = f"below minReplicas {minimum}"
    else:
        return Wish(wanted, group.minimum, group.maximum)
    return Wish(
        min(max(wanted, minimum), group.maximum),
        group.minimum,
        group.maximum,
        f"{wanted} replicas are {limit} of group {group.name} of {obj}: change that, keep the ScaledObject's "
        "minReplicaCount and maxReplicaCount within it, or set widenLimits",
    )


def patch(
    obj: RayObject,
    group: GroupSpec,
    wish: Wish,
    workers: Sequence[Worker],
    load: Load,
) -> list[Operation]:
    """Return the operations that lead to the wish, none where nothing is to be done.

    They fail as a whole when the object is no longer the one that was seen. `workers` are the group's pods and
    `load` gives the requests in them (see `victims.choose`), where `obj` is a cluster.
    """
    at = f"{obj.path}/{group.index}"
    fields = {"minReplicas": (group.minimum, wish.minimum), "maxReplicas": (group.maximum, wish.maximum)}
    fields[obj.count_field] = obj.count(group), wish.count
    changes = [_set(f"{at}/{field}", new) for field, (old, new) in sorted(fields.items()) if new != old]
    if obj.kind is TargetKind.CLUSTER and not obj.autoscaled:
        changes += _list(at, group, wish.count, workers, load)
    if not changes:
        return []
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": obj.version}, *changes]


def _list(at: str, group: GroupSpec, count: int, workers: Sequence[Worker], load: Load) -> list[Operation]:
    """Change `workersToDelete`, where that is needed.

    KubeRay counts a pod that is on its way out as one that is there, unless the list names it: were it left out, a
    count that is lowered would cost another pod, any of them. So a list that is written names all of them, and is
    cleared only when they are gone.
    """
    named = group.named or frozenset()
    present = replicas(workers, group.hosts)
    surplus = sum(replica.stays for replica in present) - count
    chosen = choose(present, surplus, load(), named) if surplus > 0 else []
    if not chosen and not named and count >= group.replicas:
        return []
    going = (replica for replica in present if not replica.stays)
    needed = frozenset[str]().union(*(replica.names for replica in (*chosen, *going)))
    spared = named & {worker.name for worker in workers} - needed
    if needed == named or (needed and needed <= named and not spared):
        return []
    if group.named is None:
        return [_set(f"{at}/scaleStrategy", {"workersToDelete": sorted(needed)})]
    return [_set(f"{at}/scaleStrategy/workersToDelete", sorted(needed))]


def _set(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}  # in RFC 6902 this also replaces
