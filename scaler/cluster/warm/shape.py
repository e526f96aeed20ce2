"""What the scheduler looks at in a pod: what it requests, and which nodes may take it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scaler.cluster.client import Json
from scaler.cluster.quantity import parse_quantity

_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "schedulerName", "runtimeClassName")
Amounts = dict[str, float]


class WarmError(Exception):
    """No room can be made for a target; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A pod of a target, as far as a place for it is concerned."""

    requests: Mapping[str, str]
    """By resource, as Kubernetes quantities; GPUs too where the pod has them only among its limits."""
    placement: Json
    """The fields of its spec that choose nodes."""
    pods: int = 1
    """Pods of one replica."""

    @property
    def resources(self) -> Json:
        """As a container has them: what cannot be overcommitted must be among the limits too."""
        strict = sorted(name for name in self.requests if "/" in name or name.startswith("hugepages-"))
        return {"requests": dict(self.requests), "limits": {name: self.requests[name] for name in strict}}


def shape_of(spec: Json, pods: int = 1) -> Shape:
    """Read a pod's spec, or a pod template's. Raises WarmError where no place can be kept for it.

    A pod requests what its containers do together or what its hungriest init container does, whichever is more; a
    container that has only limits requests these. Source: Kubernetes, "Resource sharing within containers".
    """
    if spec.get("resourceClaims"):
        raise WarmError("it gets devices by resourceClaims, for which no place can be kept: warmReplicas has no effect")
    first = spec.get("initContainers") or ()
    sidecars = [container for container in first if container.get("restartPolicy") == "Always"]
    requests = _sum(_requests(container) for container in (*spec["containers"], *sidecars))
    for container in first:
        for name, amount in _requests(container).items():
            requests[name] = max(amount, requests.get(name, 0.0))
    requests |= _requests(spec)  # for the pod as a whole, where it says so
    if not any(requests.values()):
        raise WarmError(
            "its pods request no resources, so a place for one more is none: set resources.requests (and limits for "
            "nvidia.com/gpu) in the pod template"
        )
    placement = {key: spec[key] for key in _PLACEMENT if spec.get(key)}
    return Shape({name: _quantity(amount) for name, amount in requests.items() if amount}, placement, pods)


def _requests(asking: Json) -> Amounts:
    resources = asking.get("resources") or {}
    named = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse_quantity(amount) or 0.0 for name, amount in named.items()}


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _quantity(amount: float) -> str:
    whole = round(amount)
    return str(whole) if math.isclose(amount, whole) else f"{math.ceil(amount * 1000)}m"
