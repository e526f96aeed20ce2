"""Nodes that have come for pods and have none of what these wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaler.cluster.model import Phase, Pod
from scaler.cluster.nodes import Node, lacking_devices, late_nodes, parse_node
from scaler.cluster.times import unix
from tests.unit.cluster.objects import CREATED, Json, condition, metadata

GPU = "nvidia.com/gpu"
ASKED = unix(CREATED) or 0.0


def waiting(name: str = "p", since: float = ASKED, lacks: str = f"Insufficient {GPU}", **selector: str) -> Pod:
    reason = f"0/3 nodes are available: 3 {lacks}."
    return Pod(name, name, Phase.UNSCHEDULABLE, since, since, reason=reason, node_selector=selector)


def node(name: str, after: float = 60.0, *devices: str, ready: bool = True, **labels: str) -> Node:
    return Node(name, ASKED + after, ready, labels, frozenset(devices))


def said(*nodes: Node, pod: Pod | None = None) -> list[str]:
    return list(late_nodes(lacking_devices([pod or waiting()]), nodes))


def test_a_node_that_came_without_its_gpu_is_named() -> None:
    assert said(node("gpu-7"), node("gpu-8", 60.0, GPU)) == [
        f"gpu-7: came while pods wait for {GPU} and has none of it to give; no capacity until the driver and the "
        "device plugin are up"
    ]


def test_many_are_named_by_some_of_them() -> None:
    (line,) = said(*(node(f"gpu-{i}") for i in range(5)))
    assert line.startswith("gpu-0, gpu-1, gpu-2 and others: came while pods wait for nvidia.com/gpu and have none")


@pytest.mark.parametrize(
    "other",
    [node("old", -60.0), node("booting", ready=False), node("of-another-pool", pool="cpu")],
    ids=lambda node: node.name,
)
def test_nodes_that_are_not_for_these_pods_are_not_named(other: Node) -> None:
    assert said(other, pod=waiting(pool="gpu")) == []


def test_a_node_of_the_pods_own_pool_is_named() -> None:
    assert len(said(node("gpu-7", pool="gpu", zone="a"), pod=waiting(pool="gpu"))) == 1


def test_pods_that_lack_no_device_name_no_node() -> None:
    assert said(node("gpu-7"), pod=waiting(lacks="Insufficient cpu")) == []
    assert said(node("gpu-7"), pod=waiting(lacks="node(s) had untolerated taint(s)")) == []
    assert said(node("gpu-7"), pod=replace(waiting(), phase=Phase.STARTING)) == []


def test_each_device_is_told_by_the_pod_that_has_lacked_it_longest() -> None:
    young, old = waiting("young", ASKED + 50), waiting("old", ASKED)
    both = waiting("both", ASKED + 10, lacks=f"Insufficient {GPU}, 2 Insufficient rdma/hca")
    assert lacking_devices([young, both, old]) == {GPU: old, "rdma/hca": both}


def test_a_node_is_read_for_what_it_has_to_give() -> None:
    item: Json = {
        "metadata": metadata("gpu-7", labels={"pool": "gpu"}),
        "status": {
            "conditions": [condition("Ready", True)],
            "allocatable": {"cpu": "96", GPU: "8", "rdma/hca": "0"},
        },
    }
    assert parse_node(item) == Node("gpu-7", ASKED, True, {"pool": "gpu"}, frozenset({GPU}))


def test_a_node_that_has_just_registered_is_not_ready_and_gives_nothing() -> None:
    assert parse_node({"metadata": metadata("gpu-7")}) == Node("gpu-7", ASKED, False, {}, frozenset())
