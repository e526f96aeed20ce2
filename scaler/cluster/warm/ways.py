"""The two ways to keep room on nodes: a CapacityBuffer, which node autoscalers know, and placeholder pods, for all."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.conditions import conditions_of
from scaler.cluster.errors import NOT_FOUND, ApiError
from scaler.cluster.model import ScaledObject
from scaler.cluster.reflector import Key
from scaler.cluster.resources import CAPACITY_BUFFERS, DEPLOYMENTS, POD_TEMPLATES, Resource
from scaler.cluster.times import unix
from scaler.cluster.warm import objects
from scaler.cluster.warm.objects import Placeholders
from scaler.cluster.warm.shape import Shape, WarmError

_ACTED_ON_S = 90.0
"""An autoscaler that knows CapacityBuffers has said so by then: the slower ones look each half minute."""

_IS_THERE = "FitsExistingCapacity"
"""Karpenter's word; Cluster Autoscaler says only that it looks after the buffer."""


class Way(StrEnum):
    """How room is kept."""

    AUTO = "auto"
    """By CapacityBuffers where the cluster has them, else by placeholders."""
    BUFFER = "buffer"
    PLACEHOLDERS = "placeholders"


@dataclass(frozen=True, slots=True)
class Room:
    """What there is of it."""

    pods: int = 0
    """Pods that a node has room for, as far as that is known."""
    trouble: str = ""
    """What may be wrong, empty where nothing is."""


class Keeping(Protocol):
    """One of the ways. Raises WarmError and ApiError."""

    words: str
    made: Resource
    """What is always there where room is kept in this way."""

    async def keep(self, owner: ScaledObject, shape: Shape, pods: int) -> Room:
        """Have room for so many pods of a shape; return what there is of it by now."""
        ...

    async def remove(self, key: Key) -> None:
        """Keep none for a ScaledObject."""
        ...


class Buffers:
    """Room by a CapacityBuffer over a PodTemplate: the target's own may have its GPUs among the limits alone, of which
    node autoscalers see nothing."""

    words = "a CapacityBuffer"
    made = POD_TEMPLATES

    def __init__(self, client: ApiClient, made_with: Placeholders) -> None:
        self._client = client
        self._made_with = made_with

    async def keep(self, owner: ScaledObject, shape: Shape, pods: int) -> Room:
        """See Keeping."""
        await self._client.apply(POD_TEMPLATES, objects.pod_template(owner, shape, self._made_with))
        try:
            made = await self._client.apply(CAPACITY_BUFFERS, objects.capacity_buffer(owner, pods))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            raise WarmError(
                "the cluster has no CapacityBuffers (autoscaling.x-k8s.io/v1beta1): install the definition that comes "
                "with Cluster Autoscaler or Karpenter, or start the scaler with --warm=placeholders"
            ) from None
        return _room(made)

    async def remove(self, key: Key) -> None:
        """See Keeping."""
        for resource in (CAPACITY_BUFFERS, POD_TEMPLATES):
            await self._client.delete(resource, key[0], objects.name_of(key[1]))


class PlaceholderPods:
    """Room by a Deployment of pods that do nothing, which the scheduler takes away for a real one."""

    words = "placeholder pods"
    made = DEPLOYMENTS

    def __init__(self, client: ApiClient, made_with: Placeholders) -> None:
        self._client = client
        self._made_with = made_with

    async def keep(self, owner: ScaledObject, shape: Shape, pods: int) -> Room:
        """See Keeping."""
        made = await self._client.apply(DEPLOYMENTS, objects.deployment(owner, shape, pods, self._made_with))
        refused = conditions_of(made.get("status")).get("ReplicaFailure", {})
        trouble = f"placeholder pods are refused: {refused['message']}" if refused.get("status") == "True" else ""
        return Room((made.get("status") or {}).get("readyReplicas", 0), trouble)

    async def remove(self, key: Key) -> None:
        """See Keeping."""
        await self._client.delete(DEPLOYMENTS, key[0], objects.name_of(key[1]))


def _room(buffer: Json) -> Room:
    name, conditions = f"CapacityBuffer {buffer['metadata']['name']}", conditions_of(buffer.get("status"))
    ready, provisioning = conditions.get("ReadyForProvisioning", {}), conditions.get("Provisioning")
    if ready.get("status") == "False":
        return Room(trouble=f"{name} is not ready for provisioning: {ready['reason']}: {ready['message']}")
    created = unix(buffer["metadata"]["creationTimestamp"]) or 0.0
    if provisioning is None and time.time() - created > _ACTED_ON_S:
        return Room(
            trouble=f"no autoscaler acts on {name}, which has no Provisioning condition: switch CapacityBuffers on in "
            "Cluster Autoscaler (--capacity-buffer-controller-enabled, --capacity-buffer-pod-injection-enabled) or "
            "Karpenter (feature gate CapacityBuffer), or start the scaler with --warm=placeholders"
        )
    is_there = provisioning is not None and provisioning["reason"] == _IS_THERE
    return Room(buffer["status"]["replicas"] if is_there else 0)
