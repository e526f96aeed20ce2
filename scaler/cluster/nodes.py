"""Nodes that have come for pods and cannot take them yet: a GPU node boots minutes before its driver is up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from sys import intern

from scaler.cluster.client import Json
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
        ready=any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ()),
        labels={intern(key): intern(value) for key, value in (metadata.get("labels") or {}).items()},
        devices=frozenset(
            intern(name)
            for name, amount in (status.get("allocatable") or {}).items()
            if "/" in name and str(amount) != "0"
        ),
    )


def lacking_devices(pods: Iterable[Pod]) -> dict[str, Pod]:
    """Return the extended resources that pods find no node for, each with the pod that has lacked it longest."""
    found: dict[str, Pod] = {}
    for pod in sorted((pod for pod in pods if pod.phase is Phase.UNSCHEDULABLE), key=lambda pod: pod.since):
        for name in lacking(pod.reason).split(", "):
            if "/" in name:
                found.setdefault(name, pod)
    return found


def late_nodes(lacking: Mapping[str, Pod], nodes: Iterable[Node]) -> Iterator[str]:
    """Say, in a line for each resource, which nodes have come since a pod waits for it and have none of it to give."""
    known = list(nodes)
    for resource, pod in lacking.items():
        late = [
            node.name
            for node in known
            if node.ready
            and node.created >= pod.created
            and resource not in node.devices
            and pod.node_selector.items() <= node.labels.items()
        ]
        if late:
            names = ", ".join(sorted(late)[:_NAMED]) + (" and others" if len(late) > _NAMED else "")
            yield (
                f"{names}: came while pods wait for {resource} and {'have' if len(late) > 1 else 'has'} none of it to "
                "give; no capacity until the driver and the device plugin are up"
            )
