"""Pods that the real scheduler finds no node for, until one has room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scaler.serving.protocol import insight_pb2 as pb
from tests.cluster.control_plane import Manifest
from tests.cluster.keda import KedaCluster
from tests.cluster.role import Role
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

GPU = "nvidia.com/gpu"
ROOM = {"cpu": "100", "memory": "1Ti", "pods": "100"}
SOON = {"maxNodeProvisionTime": "5s", "startingCredit": "false"}
"""Blocked soon; and without credit, which would leave a growing queue to the pods that are on the way."""


@pytest.fixture
def pool(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[str]:
    """A label that only the nodes of one test have; they go with it."""
    yield keda_namespace
    keda_cluster.kubectl("delete", "nodes", "-l", f"pool={keda_namespace}")


def add_node(cluster: KedaCluster, pool: str, name: str, gpus: int) -> None:
    """A node of the pool; one without GPUs is one whose driver still starts."""
    has = {**ROOM, GPU: str(gpus)} if gpus else ROOM
    taint = {"key": "pool", "value": pool, "effect": "NoSchedule"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"{pool}-{name}", "labels": {"pool": pool}},
        "spec": {"taints": [taint]},
        "status": {"capacity": has, "allocatable": has},
    }
    cluster.api.post("/api/v1/nodes", json=node).raise_for_status()


def give_gpus(cluster: KedaCluster, pool: str, name: str, gpus: int) -> None:
    """Let a node have so many GPUs, as its device plugin does when the driver is up."""
    has = {GPU: str(gpus)}
    reply = cluster.api.patch(
        f"/api/v1/nodes/{pool}-{name}/status",
        json={"status": {"capacity": has, "allocatable": has}},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    reply.raise_for_status()


def in_pool(pool: str) -> Manifest:
    return {"nodeSelector": {"pool": pool}, "tolerations": [{"key": "pool", "operator": "Exists"}]}


def story(model: Model) -> str:
    told = model.explain()
    return told.story if told else ""


def blocked(model: Model) -> bool:
    told = model.explain()
    return told is not None and told.state == pb.CAPACITY_BLOCKED


def test_a_target_without_nodes_is_blocked_until_there_is_room_and_goes_on_by_itself(
    stage: Stage, keda_cluster: KedaCluster, pool: str
) -> None:
    add_node(keda_cluster, pool, "first", gpus=2)
    role = Role(name="chat", replicas=2, users=2, startup="2s", placement=in_pool(pool), triggers=(SOON,))
    (model,) = stage.play(role)
    model.users = 4
    model.goes(2, 4)
    stage.wait_for("a blocked target", lambda: blocked(model))
    model.users = 7
    stage.wait_for("a higher demand", lambda: (told := model.explain()) and max(told.demand.values()) == 7)
    told = model.explain()
    assert told is not None
    assert (told.replicas.desired, told.replicas.unschedulable, told.replicas.lacks) == (4, 2, GPU)
    assert told.reason.endswith(f"lacking: {GPU}")
    stage.wait_for("an Event", lambda: "CapacityBlocked" in model.described())

    add_node(keda_cluster, pool, "second", gpus=0)  # it has come, and is no capacity yet
    stage.wait_for("a node whose GPU is missing", lambda: f"second came without {GPU}" in story(model))
    assert blocked(model)
    assert model.went(2, 4)

    give_gpus(keda_cluster, pool, "second", 8)
    model.goes(2, 4, 7)
    stage.wait_for("all of them at work", lambda: len(model.fleet.pods()) == 7 and not blocked(model))
    stage.wait_for("an Event that says so", lambda: "CapacityFound" in model.described())
    told = model.explain()
    assert told is not None
    start_up = told.start_up
    assert start_up.last_cold
    assert start_up.warm.median < start_up.node.median < start_up.cold.median
