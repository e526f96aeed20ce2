"""What a scale target asks for, has, and selects: from the object itself or from its `/scale`."""

from __future__ import annotations

from dataclasses import dataclass

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.resources import DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, Resource, split_api_version
from scaler.cluster.selector import Selector, parse_selector, selector_of


@dataclass(frozen=True, slots=True)
class TargetRef:
    """A ScaledObject's `scaleTargetRef` with its namespace."""

    namespace: str
    api_version: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def missing(self) -> str:
        """What is said when there is no such object."""
        return f"there is no {self}, which the ScaledObject's scaleTargetRef names"


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale target's counts and the pods that it means."""

    requested: int
    """`spec.replicas`"""
    current: int
    """`status.replicas`"""
    selector: Selector | None
    """None where it does not say."""


def built_in(api_version: str, kind: str) -> Resource | None:
    """Return the resource of a kind whose objects carry everything that their `/scale` would say."""
    group, _ = split_api_version(api_version)
    if group != "apps":
        return None
    return {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS, "ReplicaSet": REPLICA_SETS}.get(kind)


def scale_of_workload(item: Json, _before: Scale | None = None) -> Scale:
    """Read a Deployment, StatefulSet or ReplicaSet."""
    spec = item["spec"]
    return Scale(
        requested=spec.get("replicas", 1),
        current=(item.get("status") or {}).get("replicas", 0),
        selector=selector_of(spec["selector"]),
    )


def scale_of_subresource(item: Json) -> Scale:
    """Read a `/scale`. Raises ValueError when its selector cannot be read."""
    status = item.get("status") or {}
    selector = status.get("selector")
    return Scale(
        requested=(item.get("spec") or {}).get("replicas", 0),
        current=status.get("replicas", 0),
        selector=parse_selector(selector) if selector else None,
    )


async def patch_scale(client: ApiClient, resource: Resource, namespace: str, name: str, replicas: int) -> Scale:
    """Ask for `replicas` through `/scale`, whatever was asked for before. Raises ApiError."""
    body: Json = {"spec": {"replicas": replicas}}
    return scale_of_subresource(await client.patch(resource, namespace, name, body, "scale"))
