from __future__ import annotations

from typing import Any

import pytest

from scaler.cluster.model import Phase
from scaler.cluster.ray.model import parse_cluster, parse_service, parse_worker_group
from tests.unit.cluster.ray.world import (
    GROUP,
    cluster_json,
    group_json,
    service_json,
    worker_group_json,
    worker_json,
    workers_from,
)


def test_a_group_is_read_where_it_stands() -> None:
    cluster = parse_cluster(
        cluster_json("llama", group_json(groupName="cpu"), group_json(replicas=3, hosts=2, named=["x"]))
    )
    group = cluster.groups[GROUP]
    assert (group.index, group.replicas, group.hosts, group.named) == (1, 3, 2, frozenset({"x"}))
    assert (cluster.path, cluster.version) == ("/spec/workerGroupSpecs", "7")


def test_what_a_group_leaves_out_is_kuberays_default() -> None:
    (group,) = parse_cluster(cluster_json("llama", {"groupName": GROUP})).groups.values()
    assert (group.replicas, group.minimum, group.maximum, group.hosts) == (0, 0, 2**31 - 1, 1)
    assert group.named is None
    assert not group.suspended


def test_a_service_is_read_with_the_cluster_that_it_describes() -> None:
    service = parse_service(service_json("chat", active="a", pending="b", enableInTreeAutoscaling=True))
    assert service.path == "/spec/rayClusterConfig/workerGroupSpecs"
    assert (service.active, service.pending, service.autoscaled) == ("a", "b", True)


def test_a_worker_group_that_is_being_deleted_is_none() -> None:
    item = worker_group_json()
    item["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    assert parse_worker_group(item) is None


def managed(manager: str, time: str, *path: str, **more: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key in reversed(path):
        fields = {f"f:{key}": fields}
    return {"manager": manager, "time": time, "fieldsV1": fields, **more}


def test_the_last_other_writer_of_the_groups_is_named() -> None:
    groups = ("spec", "workerGroupSpecs")
    item = cluster_json("llama")
    item["metadata"]["managedFields"] = [
        managed("kubectl", "2026-01-31T12:00:00Z", *groups),
        managed("argocd", "2026-01-31T12:00:01Z", *groups),
        managed("vllm-scaler", "2026-01-31T12:00:02Z", *groups),
        managed("kuberay-operator", "2026-01-31T12:00:03Z", "status", subresource="status"),
        managed("labeller", "2026-01-31T12:00:04Z", "metadata", "labels"),
    ]
    assert parse_cluster(item).other_writer == "argocd"
    assert parse_cluster(cluster_json("llama")).other_writer == ""


@pytest.mark.parametrize(
    ("ready", "more", "phase"),
    [
        (True, {}, Phase.READY),
        (False, {}, Phase.STARTING),
        (True, {"deletionTimestamp": "2026-01-31T12:00:00Z"}, Phase.TERMINATING),
    ],
)
def test_a_worker_is_read_from_its_pod(ready: bool, more: dict[str, str], phase: Phase) -> None:
    (worker,) = workers_from(worker_json("llama-gpu-0", ready=ready, **more))
    assert (worker.name, worker.phase, worker.replica) == ("llama-gpu-0", phase, "")


def test_a_pod_that_has_ended_is_no_worker() -> None:
    assert workers_from(worker_json("llama-gpu-0", status={"phase": "Failed"})) == []
