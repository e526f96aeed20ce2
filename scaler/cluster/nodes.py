"""Nodes that have come for pods and cannot take them yet: a GPU node boots minutes before its driver is up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import intern

from scaler.cluster.client import Json
from scaler.cluster.conditions import conditions_of
from scaler.cluster.model import Phase, Pod
from scaler.cluster.scheduling import lacking
from scaler.cluster.times import unix

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Node:
    """The little of a node that matters here."""

    name: str
    created: float
    ready: bool
    labels: Mapping[str, str]
    devices: frozenset[str]
    """The extended resources that it has to give, such as `nvidia.com/gpu`."""


def parse_node(item: Json, _before: Node | None = None) -> Node:
    """Read a node."""
    metadata, status = item["metadata"], item.get("status") or {}
    return Node(
        name=metadata["name"],
        created=unix(metadata["creationTimestamp"]) or 0.0,
        ready=conditions_of(status).get("Ready", {}).get("status") == "True",
        labels={intern(key): intern(value) for key, value in (metadata.get("labels") or {}).items()},
        devices=frozenset(
            intern(name)
            for name, amount in (status.get("allocatable") or {}).items()
            if "/" in name and str(amount) != "0"
        ),
    )


def devices_lacking(pod: Pod) -> list[str]:
    """Return the extended resources, such as `nvidia.com/gpu`, that a pod finds no node for."""
    names = lacking(pod.reason).split(", ") if pod.phase is Phase.UNSCHEDULABLE else []
    return [name for name in names if "/" in name]


def name_late_nodes(pods: Sequence[Pod], nodes: Iterable[Node]) -> tuple[Pod, ...]:
    """Add to the reasons of pods which nodes have come since they wait and have none of what they lack to give.

    Of the pods that lack the same, the one that waits longest tells which nodes could be meant.
    """
    first: dict[str, Pod] = {}
    for pod in sorted(pods, key=lambda pod: pod.created):
        for device in devices_lacking(pod):
            first.setdefault(device, pod)
    known = list(nodes)
    late = {device: text for device, pod in first.items() if (text := _late(device, pod, known))}

    def told(pod: Pod) -> Pod:
        texts = [late[device] for device in devices_lacking(pod) if device in late]
        return replace(pod, reason="; ".join((pod.reason.rstrip("."), *texts))) if texts else pod

    return tuple(map(told, pods)) if late else tuple(pods)


def _late(device: str, pod: Pod, nodes: Iterable[Node]) -> str:
    names = sorted(
        node.name
        for node in nodes
        if node.ready
        and node.created >= pod.created
        and device not in node.devices
        and pod.node_selector.items() <= node.labels.items()
    )
    if not names:
        return ""
    shown = ", ".join(names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
    return f"{shown} came without {device}: no capacity until the driver and the device plugin are up"
