"""A real Ray whose nodes are the pods of a RayCluster: each `ray start` has a pod's address and its name."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from types import TracebackType
from typing import Any, Self

from tests.cluster.ray_node import RayNode, Serve
from tests.cluster.ray_stage import RayStage

APPLICATION, DEPLOYMENT = "llm", "Engine"


class RayNodes:
    """The head and the workers of one RayCluster, as a context manager; `dashboard` is the head's port."""

    def __init__(self, stage: RayStage, name: str, dashboard: int) -> None:
        self._stage = stage
        self._name = name
        self._dashboard = dashboard
        self._gcs, self._client, self._http = (stage.cluster.reserve_port("ray") for _ in range(3))
        self._workers: dict[str, RayNode] = {}
        self._head: RayNode | None = None
        self._folder = tempfile.TemporaryDirectory(
            prefix="rt", dir="/tmp", ignore_cleanup_errors=True
        )  # sockets need a short path
        self._address = ""

    def __enter__(self) -> Self:
        head = self._stage.wait_for("the head's pod", lambda: self._pods("head"))
        ((name, self._address),) = head.items()
        node = self._head = self._start(
            name,
            "--head",
            f"--node-ip-address={self._address}",
            f"--port={self._gcs}",
            f"--ray-client-server-port={self._client}",
            "--dashboard-host=0.0.0.0",
            f"--dashboard-port={self._dashboard}",
            f"--temp-dir={self._folder.name}",
            "--num-cpus=0",
        )
        self._stage.wait_for("Ray's dashboard", lambda: node.revive() or self._serve.answers())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in (*self._workers.values(), self._head):
            if node is not None:
                node.program.stop()
                self._stage.cluster.programs.pop(node.program.name, None)
        self._folder.cleanup()

    def follow(self) -> int:
        """Let every worker's pod be a node, and none else. Returns how many there are."""
        pods = self._pods("worker")
        for name in self._workers.keys() - pods.keys():
            self._workers.pop(name).program.stop()
            self._stage.cluster.programs.pop(name)
        for name in pods.keys() - self._workers.keys():
            head = f"{self._address}:{self._gcs}"
            self._workers[name] = self._start(
                name, f"--address={head}", f"--node-ip-address={pods[name]}", "--num-cpus=1"
            )
        for node in self._workers.values():
            node.revive()
        return len(self._workers)

    def deploy(self, **changes: Any) -> None:
        """Put the application there, its one deployment changed so."""
        self._serve.deploy(
            {
                "name": APPLICATION,
                "import_path": "engine:app",
                "external_scaler_enabled": True,
                "deployments": [{"name": DEPLOYMENT, "num_replicas": 1, **changes}],
            }
        )

    def target(self) -> int | None:
        """How many replicas Serve is to have."""
        target: int | None = self._deployment().get("target_num_replicas")
        return target

    def limit(self) -> int | None:
        """The deployment's max_ongoing_requests."""
        limit: int | None = self._deployment().get("deployment_config", {}).get("max_ongoing_requests")
        return limit

    @property
    def url(self) -> str:
        """Where the application is served."""
        return self._serve.url

    @property
    def _serve(self) -> Serve:
        return Serve(f"{self._address}:{self._dashboard}", self._http)

    def _deployment(self) -> dict[str, Any]:
        return self._serve.deployment(APPLICATION, DEPLOYMENT)

    def _start(self, pod: str, *options: str) -> RayNode:
        # KubeRay sets the pod's name so.
        return RayNode(self._stage.cluster.run, pod, *options, RAY_CLOUD_INSTANCE_ID=pod)

    def _pods(self, kind: str) -> dict[str, str]:
        """Name → address of the pods of that kind that stay and have one."""
        selector = f"ray.io/cluster={self._name},ray.io/node-type={kind}"
        path = f"/api/v1/namespaces/{self._stage.namespace}/pods?labelSelector={selector}"
        found: Collection[Any] = (self._stage.cluster.get(path) or {}).get("items", ())
        return {
            pod["metadata"]["name"]: pod["status"]["podIP"]
            for pod in found
            if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("podIP")
        }
