"""RayWorkerGroups, KubeRay's objects and worker pods, built from few words."""

from __future__ import annotations

from typing import Any

from scaler.cluster.model import Phase
from scaler.cluster.pods import parse_pod
from scaler.cluster.ray.model import (
    GroupSpec,
    RayObject,
    Worker,
    WorkerGroup,
    parse_cluster,
    parse_service,
    parse_worker,
    parse_worker_group,
)
from tests.unit.cluster.objects import condition, metadata, pod

Json = dict[str, Any]

GROUP = "gpu"


def group_json(*, hosts: int = 1, named: list[str] | None = None, **fields: Any) -> Json:
    spec: Json = {"groupName": GROUP, "minReplicas": 0, "maxReplicas": 10, "replicas": 0, "numOfHosts": hosts}
    if named is not None:
        spec["scaleStrategy"] = {"workersToDelete": named}
    return {**spec, **fields}


def cluster_json(name: str, *groups: Json, **spec: Any) -> Json:
    return {
        "metadata": metadata(name, generation=1, resourceVersion="7"),
        "spec": {"workerGroupSpecs": list(groups) or [group_json()], **spec},
    }


def service_json(name: str, *groups: Json, active: str = "", pending: str = "", **spec: Any) -> Json:
    return {
        "metadata": metadata(name, generation=1, resourceVersion="7"),
        "spec": {"rayClusterConfig": {"workerGroupSpecs": list(groups) or [group_json()], **spec}},
        "status": {
            "activeServiceStatus": {"rayClusterName": active},
            "pendingServiceStatus": {"rayClusterName": pending},
        },
    }


def worker_group_json(name: str = "llama", *, kind: str = "RayCluster", target: str = "llama", **spec: Any) -> Json:
    spec = {"targetRef": {"kind": kind, "name": target}, "group": GROUP, **spec}
    return {"metadata": metadata(name, generation=1, resourceVersion="7"), "spec": spec}


def worker_json(name: str, cluster: str = "llama", *, ready: bool = True, **more: Any) -> Json:
    labels = {"ray.io/cluster": cluster, "ray.io/group": GROUP, "ray.io/node-type": "worker"}
    return pod(name, condition("Ready", ready), labels=labels, **more)


def a_cluster(name: str = "llama", /, **fields: Any) -> RayObject:
    spec = {key: fields.pop(key) for key in ("enableInTreeAutoscaling", "suspend") if key in fields}
    return parse_cluster(cluster_json(name, group_json(**fields), **spec))


def a_service(name: str = "chat", /, *, active: str = "", pending: str = "", **fields: Any) -> RayObject:
    return parse_service(service_json(name, group_json(**fields), active=active, pending=pending))


def a_worker_group(**more: Any) -> WorkerGroup:
    found = parse_worker_group(worker_group_json(**more))
    assert found is not None
    return found


def spec_of(obj: RayObject) -> GroupSpec:
    return obj.groups[GROUP]


def worker(name: str, *, phase: Phase = Phase.READY, created: float = 0.0, replica: str = "") -> Worker:
    return Worker(name, replica, phase, created)


def workers_from(*items: Json) -> list[Worker]:
    found = [parse_pod(item, None) for item in items]
    return [parse_worker(each) for each in found if each is not None]
