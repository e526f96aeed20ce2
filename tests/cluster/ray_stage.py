"""A namespace with RayWorkerGroups, as tests look at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.cluster.control_plane import Manifest
from tests.cluster.keda import KedaCluster
from tests.cluster.kuberay import CLUSTERS, GROUP, SERVICES, WORKER_GROUPS

_T = TypeVar("_T")
_SOON_S = 300.0


class RayStage:
    """What is there, asked anew each time."""

    def __init__(self, cluster: KedaCluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def apply(self, *manifests: Manifest) -> None:
        """Create or change objects."""
        self.cluster.apply(*manifests, namespace=self.namespace)

    def wait_for(self, what: str, condition: Callable[[], _T | None]) -> _T:
        """The first true value of the condition."""
        return self.cluster.wait_for(what, condition, timeout_s=_SOON_S)

    def workers(self, name: str) -> list[str]:
        """The names of a RayCluster's worker pods, without those on their way out, oldest first."""
        selector = f"ray.io/cluster={name},ray.io/group={GROUP}"
        found = self.cluster.get(f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={selector}") or {}
        staying = [pod["metadata"] for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]
        return [pod["name"] for pod in sorted(staying, key=lambda pod: (pod["creationTimestamp"], pod["name"]))]

    def ready(self, selector: str) -> list[str]:
        """The names of the pods that are ready and that a selector picks."""
        return self.cluster.ready_pods(self.namespace, selector)

    def group_of(self, cluster: str) -> dict[str, Any]:
        """A RayCluster's worker group."""
        found = self.cluster.get(f"{CLUSTERS.format(self.namespace)}/{cluster}") or {}
        group: dict[str, Any] = found["spec"]["workerGroupSpecs"][0]
        return group

    def group_of_service(self, service: str) -> dict[str, Any]:
        """The worker group that a RayService describes."""
        found = self.service(service)
        group: dict[str, Any] = found["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
        return group

    def service(self, name: str) -> dict[str, Any]:
        """A RayService."""
        found = self.cluster.get(f"{SERVICES.format(self.namespace)}/{name}")
        assert found is not None
        return found

    def pending(self, service: str) -> str:
        """The cluster that is to take the place of a RayService's present one; empty for none."""
        status = self.service(service).get("status") or {}
        name: str = (status.get("pendingServiceStatus") or {}).get("rayClusterName", "")
        return name

    def worker_group(self, name: str) -> dict[str, Any]:
        """A RayWorkerGroup."""
        found = self.cluster.get(f"{WORKER_GROUPS.format(self.namespace)}/{name}")
        assert found is not None
        return found

    def status(self, name: str) -> dict[str, Any]:
        """Its status, empty while there is none."""
        status: dict[str, Any] = self.worker_group(name).get("status") or {}
        return status

    def condition(self, name: str, kind: str = "Ready") -> tuple[str, str, str]:
        """A condition's status, reason and message; empty while there is none."""
        for condition in self.status(name).get("conditions", ()):
            if condition["type"] == kind:
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    def scale(self, name: str, replicas: int) -> None:
        """`kubectl scale` of a RayWorkerGroup."""
        self.cluster.kubectl("scale", f"rwg/{name}", f"--replicas={replicas}", "-n", self.namespace)

    def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and note of the events on a RayWorkerGroup."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        found: Sequence[Any] = (self.cluster.get(path) or {}).get("items", ())
        about = ("RayWorkerGroup", name)
        return [
            (event["reason"], event["note"])
            for event in found
            if (event["regarding"].get("kind"), event["regarding"].get("name")) == about
        ]
