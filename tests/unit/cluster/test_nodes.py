"""Nodes that have come for pods and have none of what these wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaler.cluster.model import Phase, Pod
from scaler.cluster.nodes import Node, devices_lacking, name_late_nodes, parse_node
from scaler.cluster.times import unix
from tests.unit.cluster.objects import CREATED, Json, condition, metadata

GPU = "nvidia.com/gpu"
ASKED = unix(CREATED) or 0.0


def waiting(name: str = "p", since: float = ASKED, lacks: str = f"Insufficient {GPU}", **selector: str) -> Pod:
    reason = f"0/3 nodes are available: 3 {lacks}."
    return Pod(name, name, Phase.UNSCHEDULABLE, since, since, reason=reason, node_selector=selector)


def node(name: str, after: float = 60.0, *devices: str, ready: bool = True, **labels: str) -> Node:
    return Node(name, ASKED + after, ready, labels, frozenset(devices))


def said(*nodes: Node, pod: Pod | None = None) -> str:
    """What is added to the reason of a pod."""
    pod = pod or waiting()
    (told,) = name_late_nodes([pod], nodes)
    return told.reason.removeprefix(pod.reason.rstrip(".")).removeprefix(".")


def test_a_node_that_came_without_its_gpu_is_named() -> None:
    added = said(node("gpu-7"), node("gpu-8", 60.0, GPU))
    assert added == f"; gpu-7 came without {GPU}: no capacity until the driver and the device plugin are up"


def test_many_are_named_by_some_of_them() -> None:
    added = said(*(node(f"gpu-{i}") for i in range(5)))
    assert added.startswith(f"; gpu-0, gpu-1, gpu-2 and others came without {GPU}")


@pytest.mark.parametrize(
    "other",
    [node("old", -60.0), node("booting", ready=False), node("of-another-pool", pool="cpu")],
    ids=lambda node: node.name,
)
def test_nodes_that_are_not_for_these_pods_are_not_named(other: Node) -> None:
    assert said(other, pod=waiting(pool="gpu")) == ""


def test_a_node_of_the_pods_own_pool_is_named() -> None:
    assert "gpu-7" in said(node("gpu-7", pool="gpu", zone="a"), pod=waiting(pool="gpu"))


def test_pods_that_lack_no_device_name_no_node() -> None:
    assert said(node("gpu-7"), pod=waiting(lacks="Insufficient cpu")) == ""
    assert said(node("gpu-7"), pod=waiting(lacks="node(s) had untolerated taint(s)")) == ""
    assert said(node("gpu-7"), pod=replace(waiting(), phase=Phase.STARTING)) == ""


def test_all_that_lack_a_device_are_told_of_the_nodes_since_the_first_of_them() -> None:
    young, old = waiting("young", ASKED + 90), waiting("old", ASKED)
    both = waiting("both", ASKED + 70, lacks=f"Insufficient {GPU}, 2 Insufficient rdma/hca")
    told = name_late_nodes([young, both, old], [node("gpu-7", 60.0)])
    assert [f"gpu-7 came without {GPU}" in pod.reason for pod in told] == [True, True, True]
    assert all("without rdma/hca" not in pod.reason for pod in told)
    assert [devices_lacking(pod) for pod in told] == [[GPU], [GPU, "rdma/hca"], [GPU]]


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
