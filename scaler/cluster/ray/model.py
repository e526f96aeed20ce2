"""What the bridge sees: RayWorkerGroups, and of KubeRay's resources only the worker groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scaler.cluster.client import Json
from scaler.cluster.model import Phase
from scaler.cluster.pods import LabelledPod

API_VERSION = "vllm-scaler.dev/v1alpha1"
KIND = "RayWorkerGroup"
OURS = "vllm-scaler"
"""Our name among an object's managers, as the API server takes it from the User-Agent."""
CLUSTER_LABEL = "ray.io/cluster"
GROUP_LABEL = "ray.io/group"
HOST_LABEL = "ray.io/replica-host-index"
_REPLICA_LABEL = "ray.io/worker-group-replica-name"
"""Of the pods of one replica, where a replica has several hosts and KubeRay's RayMultiHostIndexing is on."""
_NO_MAXIMUM = 2**31 - 1
_DASHBOARD_PORT = 8265


class BridgeError(Exception):
    """A RayWorkerGroup cannot be carried: `reason` is its condition's word, the message says what to change."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TargetKind(StrEnum):
    """What a RayWorkerGroup may point at."""

    CLUSTER = "RayCluster"
    SERVICE = "RayService"


@dataclass(frozen=True, slots=True)
class ServeRef:
    """A deployment of a Ray Serve application."""

    application: str
    deployment: str

    def __str__(self) -> str:
        return f"deployment {self.application}/{self.deployment}"


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """A RayWorkerGroup."""

    namespace: str
    name: str
    uid: str
    generation: int
    kind: TargetKind
    target: str
    group: str
    replicas: int | None
    """None until somebody has asked for a number."""
    widen: bool
    """Whether the group's own limits give way."""
    serve: ServeRef | None
    """What the count is the target of, where Ray Serve is to be told; its replicas run on the group's workers."""
    status: Json
    """As it stands there."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """One of a RayCluster's `workerGroupSpecs`. Counts are replicas, each of `hosts` pods."""

    index: int
    name: str
    replicas: int
    minimum: int
    maximum: int
    hosts: int
    suspended: bool
    named: frozenset[str] | None
    """The pods in `scaleStrategy.workersToDelete`; None where there is no `scaleStrategy`."""


@dataclass(frozen=True, slots=True)
class RayObject:
    """A RayCluster, or a RayService with the cluster that it describes."""

    kind: TargetKind
    namespace: str
    name: str
    uid: str
    generation: int
    version: str
    """Its resourceVersion."""
    path: str
    """Where in it the worker groups stand, as a JSON pointer."""
    autoscaled: bool
    """Whether Ray's own autoscaler works in it (`enableInTreeAutoscaling`)."""
    suspended: bool
    going: bool
    """It is being deleted."""
    groups: Mapping[str, GroupSpec]
    other_writer: str
    """Who else wrote the worker groups last; empty for nobody."""
    active: str = ""
    pending: str = ""
    """A RayService's clusters: the one that serves, and the one that is to take its place."""
    head: str = ""
    """A RayCluster's dashboard, `host:port`; empty while there is none."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def count_field(self) -> str:
        """The number that is ours to write.

        Ray's autoscaler overwrites `replicas` and takes away what is idle, down to `minReplicas`: there ours is the
        floor.
        """
        return "minReplicas" if self.autoscaled else "replicas"

    def count(self, group: GroupSpec) -> int:
        """Return what stands in that field."""
        return group.minimum if self.autoscaled else group.replicas


@dataclass(frozen=True, slots=True)
class Worker:
    """A pod of a worker group."""

    name: str
    replica: str
    """What it is a part of, by name; empty where that cannot be told."""
    phase: Phase
    created: float


def parse_worker_group(item: Json, _before: WorkerGroup | None = None) -> WorkerGroup | None:
    """Read a RayWorkerGroup; None for one that is being deleted."""
    metadata, spec = item["metadata"], item["spec"]
    if "deletionTimestamp" in metadata:
        return None
    return WorkerGroup(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        kind=TargetKind(spec["targetRef"]["kind"]),
        target=spec["targetRef"]["name"],
        group=spec["group"],
        replicas=spec.get("replicas"),
        widen=spec.get("widenLimits", False),
        serve=ServeRef(spec["serve"]["application"], spec["serve"]["deployment"]) if "serve" in spec else None,
        status=item.get("status") or {},
    )


def parse_cluster(item: Json, _before: RayObject | None = None) -> RayObject:
    """Read a RayCluster."""
    return _parse(TargetKind.CLUSTER, item, ("spec",))


def parse_service(item: Json, _before: RayObject | None = None) -> RayObject:
    """Read a RayService."""
    return _parse(TargetKind.SERVICE, item, ("spec", "rayClusterConfig"))


def parse_worker(pod: LabelledPod) -> Worker:
    """Read a worker's pod."""
    return Worker(pod.pod.name, pod.labels.get(_REPLICA_LABEL, ""), pod.pod.phase, pod.pod.created)


def _parse(kind: TargetKind, item: Json, path: tuple[str, ...]) -> RayObject:
    metadata, status = item["metadata"], item.get("status") or {}
    spec: Mapping[str, Any] = item
    for key in path:
        spec = spec[key]
    groups = [_group(index, group) for index, group in enumerate(spec.get("workerGroupSpecs") or ())]
    return RayObject(
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        version=metadata["resourceVersion"],
        path="/" + "/".join((*path, "workerGroupSpecs")),
        autoscaled=spec.get("enableInTreeAutoscaling") or False,
        suspended=spec.get("suspend") or False,
        going="deletionTimestamp" in metadata,
        groups={group.name: group for group in groups},
        other_writer=_other_writer(metadata.get("managedFields") or (), (*path, "workerGroupSpecs")),
        active=(status.get("activeServiceStatus") or {}).get("rayClusterName", ""),
        pending=(status.get("pendingServiceStatus") or {}).get("rayClusterName", ""),
        head=_dashboard(spec, status),
    )


def _dashboard(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    host = (status.get("head") or {}).get("podIP")
    if not host:
        return ""
    containers = ((spec.get("headGroupSpec") or {}).get("template") or {}).get("spec", {}).get("containers") or ()
    ports = [port for container in containers for port in container.get("ports") or ()]
    port = next((port["containerPort"] for port in ports if port.get("name") == "dashboard"), _DASHBOARD_PORT)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _group(index: int, spec: Mapping[str, Any]) -> GroupSpec:
    strategy = spec.get("scaleStrategy")
    return GroupSpec(
        index=index,
        name=spec["groupName"],
        replicas=spec.get("replicas") or 0,
        minimum=spec.get("minReplicas") or 0,
        maximum=spec.get("maxReplicas", _NO_MAXIMUM),
        hosts=max(1, spec.get("numOfHosts") or 1),
        suspended=spec.get("suspend") or False,
        named=None if strategy is None else frozenset(strategy.get("workersToDelete") or ()),
    )


def _other_writer(entries: Iterable[Mapping[str, Any]], path: tuple[str, ...]) -> str:
    """Return the last manager but us that has set a field."""
    others = [
        (entry.get("time", ""), entry["manager"])
        for entry in entries
        if entry["manager"] != OURS and not entry.get("subresource") and _has(entry.get("fieldsV1") or {}, path)
    ]
    return max(others, default=("", ""))[1]


def _has(fields: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    for key in path:
        if f"f:{key}" not in fields:
            return False
        fields = fields[f"f:{key}"]
    return True
