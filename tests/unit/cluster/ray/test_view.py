from __future__ import annotations

from dataclasses import replace

import pytest

from scaler.cluster.model import Phase
from scaler.cluster.ray.model import BridgeError, RayObject, TargetKind, Worker
from scaler.cluster.ray.view import count, look
from tests.unit.cluster.ray.world import a_cluster, a_service, a_worker_group, worker


class There:
    """A view of the objects that are given."""

    def __init__(self, *objects: RayObject) -> None:
        self._objects = {(obj.kind, obj.name): obj for obj in objects}

    def find(self, kind: TargetKind, namespace: str, name: str) -> RayObject | None:
        return self._objects.get((kind, name))

    def workers(self, namespace: str, cluster: str, group: str) -> list[Worker]:
        return []


def test_a_cluster_is_written_to_itself() -> None:
    scene = look(a_worker_group(), There(a_cluster("llama")))
    assert (scene.serving.name, [obj.name for obj in scene.objects]) == ("llama", ["llama"])


@pytest.mark.parametrize(
    ("active", "pending", "there", "serving", "written"),
    [
        ("a", "", ["a"], "a", ["chat", "a"]),
        ("a", "b", ["a", "b"], "a", ["chat", "a", "b"]),
        ("", "b", ["b"], "b", ["chat", "b"]),
        ("a", "b", ["a"], "a", ["chat", "a"]),
    ],
    ids=["one cluster", "an upgrade", "the first cluster starts", "an upgrade whose cluster is not made yet"],
)
def test_a_service_is_written_to_with_each_of_its_clusters(
    active: str, pending: str, there: list[str], serving: str, written: list[str]
) -> None:
    group = a_worker_group(kind="RayService", target="chat")
    clusters = [a_cluster(name) for name in there]
    scene = look(group, There(a_service("chat", active=active, pending=pending), *clusters))
    assert scene.serving.name == serving
    assert [obj.name for obj in scene.objects] == written


def test_a_group_that_an_upgrade_drops_is_still_carried_where_it_serves() -> None:
    group = a_worker_group(kind="RayService", target="chat")
    service = a_service("chat", active="a", pending="b", groupName="new")
    scene = look(group, There(service, a_cluster("a"), a_cluster("b", groupName="new")))
    assert [obj.name for obj in scene.objects] == ["a"]


@pytest.mark.parametrize(
    ("there", "reason", "told"),
    [
        ([], "RayClusterNotFound", "there is no RayCluster llama in namespace serving: create it, or correct"),
        (
            [a_cluster("llama", groupName="cpu")],
            "GroupNotFound",
            "RayCluster llama has no worker group gpu; it has cpu",
        ),
        ([a_cluster("llama", suspend=True)], "Suspended", "RayCluster llama is suspended"),
        ([replace(a_cluster("llama"), groups={})], "GroupNotFound", "it has none"),
    ],
)
def test_what_is_missing_is_said(there: list[RayObject], reason: str, told: str) -> None:
    with pytest.raises(BridgeError) as raised:
        look(a_worker_group(), There(*there))
    assert raised.value.reason == reason
    assert told in str(raised.value)


def test_a_service_without_a_cluster_is_waited_for() -> None:
    with pytest.raises(BridgeError, match=r"RayService chat has no RayCluster yet") as raised:
        look(a_worker_group(kind="RayService", target="chat"), There(a_service("chat", active="a")))
    assert raised.value.reason == "NoCluster"


def test_replicas_are_counted_without_those_on_their_way_out() -> None:
    workers = [worker("a"), worker("b", phase=Phase.STARTING), worker("c", phase=Phase.TERMINATING)]
    counts = count(a_worker_group(), a_cluster("llama"), workers)
    assert (counts.replicas, counts.ready) == (2, 1)
    assert counts.selector == "ray.io/cluster=llama,ray.io/group=gpu"


def test_hosts_are_counted_as_replicas() -> None:
    workers = [worker(f"{r}-{h}", replica=r) for r in ("a", "b") for h in (0, 1)]
    workers[0] = replace(workers[0], phase=Phase.STARTING)
    counts = count(a_worker_group(), a_cluster("llama", hosts=2), workers)
    assert (counts.replicas, counts.ready) == (2, 1)
    assert counts.selector == "ray.io/cluster=llama,ray.io/group=gpu,ray.io/replica-host-index=0"


@pytest.mark.parametrize(
    ("workers", "selector"),
    [
        ([], "ray.io/cluster=llama,ray.io/group=gpu,ray.io/replica-host-index=0"),
        ([worker("a"), worker("b")], ""),
    ],
    ids=["none yet", "old ones that do not say what they belong to"],
)
def test_a_replica_of_several_hosts_is_never_taken_for_several_replicas(workers: list[Worker], selector: str) -> None:
    assert count(a_worker_group(), a_cluster("llama", hosts=2), workers).selector == selector
