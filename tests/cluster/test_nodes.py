"""GPU nodes that come and go: a real node autoscaler (Karpenter, with kwok's nodes) beside KEDA and the scaler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from scaler.serving.protocol import insight_pb2 as pb
from scaler.targets import trigger_id
from tests.cluster.cluster import is_ready
from tests.cluster.control_plane import Manifest
from tests.cluster.karpenter import Karpenter, placement
from tests.cluster.keda import KedaCluster
from tests.cluster.role import POLICIES, Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

NODE_S = 6
"""How long a node takes to come; in life some minutes."""
START_S = 2
"""How long a pod takes on a node that is there; in life a minute or so."""
AT_ONCE = {"burstThreshold": "0.3", "delivery": "direct"}
"""Counts go up without waiting for the HPA, which would blur what nodes take."""
LOW = "warm-of-tests"
MADE = {
    "buffer": "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{}/capacitybuffers/chat-warm",
    "placeholders": "/apis/apps/v1/namespaces/{}/deployments/chat-warm",
}
"""What keeps room for the model `chat`, by the way in which it is kept."""


@pytest.fixture(scope="module")
def karpenter(keda_cluster: KedaCluster) -> Iterator[Karpenter]:
    keda_cluster.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": LOW},
            "value": -5,
            "preemptionPolicy": "Never",
        }
    )
    with Karpenter(keda_cluster) as karpenter:
        yield karpenter


@contextmanager
def stage_with(cluster: KedaCluster, namespace: str, *options: str) -> Iterator[Stage]:
    """A stage whose scaler has these options."""
    with ScalerProcess(cluster, POLICIES, *options) as scaler, Stage(cluster, namespace, scaler) as stage:
        yield stage


def play(stage: Stage, pool: str, **metadata: str) -> Model:
    """The model `chat`, whose pods go to a pool's nodes, with one replica and one user."""
    triggers = ({**AT_ONCE, **metadata},)
    role = Role(name="chat", replicas=1, users=1, startup=f"{START_S}s", placement=placement(pool), triggers=triggers)
    (model,) = stage.play(role)
    return model


def pods(stage: Stage, count: int) -> list[Manifest]:
    """The model's pods, oldest first, once there are so many and all of them are ready."""
    path = f"/api/v1/namespaces/{stage.namespace}/pods?labelSelector=app=chat"

    def look() -> list[Manifest] | None:
        found = (stage.cluster.get(path) or {})["items"]
        return found if len(found) == count and all(map(is_ready, found)) else None

    return sorted(stage.wait_for(f"{count} ready pods", look), key=created)


def names(things: list[Manifest]) -> set[str]:
    return {thing["metadata"]["name"] for thing in things}


def created(thing: Manifest) -> float:
    return datetime.fromisoformat(thing["metadata"]["creationTimestamp"]).timestamp()


def took(pod: Manifest) -> float:
    """From its creation to its being ready, in seconds."""
    (ready,) = (each for each in pod["status"]["conditions"] if each["type"] == "Ready")
    return datetime.fromisoformat(ready["lastTransitionTime"]).timestamp() - created(pod)


@pytest.mark.parametrize("way", MADE)
def test_room_that_is_there_before_the_pod_spares_it_the_time_of_a_node(
    keda_cluster: KedaCluster, keda_namespace: str, karpenter: Karpenter, way: str
) -> None:
    karpenter.pool(way, node_s=NODE_S, consolidate_after="1s")
    with stage_with(keda_cluster, keda_namespace, f"--warm={way}", f"--warm-priority-class={LOW}") as stage:

        def made() -> Manifest | None:
            return keda_cluster.get(MADE[way].format(keda_namespace))

        def ready_nodes() -> int:
            return sum(map(is_ready, karpenter.nodes(way).values()))

        model = play(stage, way)
        stage.wait_for("no node more than needed", lambda: karpenter.claims(way) == 1)  # it may have asked for two
        karpenter.pool(way, node_s=NODE_S)
        model.users = 2
        *_, cold = pods(stage, 2)
        assert created(karpenter.nodes(way)[cold["spec"]["nodeName"]]) > created(cold)

        model.has({**AT_ONCE, "warmReplicas": "1"})
        stage.wait_for("room for one more", lambda: ready_nodes() >= 3)
        model.users = 3
        *_, warm = pods(stage, 3)
        assert created(karpenter.nodes(way)[warm["spec"]["nodeName"]]) <= created(warm)
        print(f"{way}: asked → ready {took(cold):.0f}s with a new node, {took(warm):.0f}s with a warm one")
        assert took(warm) < took(cold)

        told = model.explain(trigger_id({"policy": "plain", **AT_ONCE, "warmReplicas": "1"}))
        assert told is not None
        assert told.replicas.warm == 1
        assert not told.warnings
        assert made() is not None
        model.has(AT_ONCE)
        stage.wait_for("no room kept", lambda: made() is None)


def test_pods_without_a_node_block_the_target_until_the_limit_is_raised(
    keda_cluster: KedaCluster, keda_namespace: str, karpenter: Karpenter
) -> None:
    karpenter.pool("capped", node_s=1, most=2)
    with stage_with(keda_cluster, keda_namespace) as stage:
        model = play(stage, "capped", maxNodeProvisionTime="5s")

        def told() -> pb.Explanation:
            return stage.wait_for("a decision", model.explain)

        model.users = 3
        stage.wait_for("a blocked target", lambda: told().state == pb.CAPACITY_BLOCKED)
        assert "lacking: nvidia.com/gpu" in told().reason
        assert told().replicas.ready == 2
        model.users = 5
        stage.wait_for("a demand of 5", lambda: told().demand["ongoing requests"] >= 5)
        assert told().replicas.desired == told().replicas.requested == 3
        assert "CapacityBlocked" in model.described()

        karpenter.pool("capped", node_s=1, most=5)
        before = pods(stage, 5)
        stage.wait_for("a target that is blocked no more", lambda: told().state == pb.ACTIVE)

        karpenter.pool("capped", node_s=1, most=5, consolidate_after="1s")
        model.users = 2
        after = pods(stage, 2)
        stage.wait_for("nodes for those alone", lambda: len(karpenter.nodes("capped")) == 2)
        stage.wait_for("a request in each", lambda: [pod.running for pod in model.fleet.pods()] == [1, 1])
        assert names(pods(stage, 2)) == names(after) < names(before)
