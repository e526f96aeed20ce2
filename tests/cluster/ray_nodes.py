"""A real Ray whose nodes are the pods of a RayCluster: each `ray start` has a pod's address and its name."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.cluster import ray_installation
from tests.cluster.programs import Program
from tests.cluster.ray_stage import RayStage

APP = Path(__file__).with_name("ray_app")
APPLICATION, DEPLOYMENT = "llm", "Engine"
_MEMORY = 80_000_000
_START_S = 60.0
_STARTED = "Ray runtime started."
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # else it kills where the machine is full of other things
    "PYTHONPATH": str(APP),
}


class RayNodes:
    """The head and the workers of one RayCluster, as a context manager; `dashboard` is the head's port."""

    def __init__(self, stage: RayStage, name: str, dashboard: int) -> None:
        self._stage = stage
        self._name = name
        self._dashboard = dashboard
        self._ray = ray_installation.python().with_name("ray")
        self._gcs, self._client, self._http = (stage.cluster.reserve_port("ray") for _ in range(3))
        self._workers: dict[str, Program] = {}
        self._head: Program | None = None
        self._folder = tempfile.TemporaryDirectory(
            prefix="rt", dir="/tmp", ignore_cleanup_errors=True
        )  # sockets need a short path
        self._address = ""
        self._began: dict[str, float] = {}
        """When each node was started (monotonic)."""

    def __enter__(self) -> Self:
        head = self._stage.wait_for("the head's pod", lambda: self._pods("head"))
        ((name, self._address),) = head.items()
        self._head = self._start(
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
        head_program = self._head
        self._stage.wait_for("Ray's dashboard", lambda: self._revive(head_program) or self._answers())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in (*self._workers.values(), self._head):
            if program is not None:
                program.stop()
                self._stage.cluster.programs.pop(program.name, None)
        self._folder.cleanup()

    def follow(self) -> int:
        """Let every worker's pod be a node, and none else. Returns how many there are."""
        pods = self._pods("worker")
        for name in self._workers.keys() - pods.keys():
            self._workers.pop(name).stop()
            self._stage.cluster.programs.pop(name)
        for name in pods.keys() - self._workers.keys():
            head = f"{self._address}:{self._gcs}"
            self._workers[name] = self._start(
                name, f"--address={head}", f"--node-ip-address={pods[name]}", "--num-cpus=1"
            )
        for program in self._workers.values():
            self._revive(program)
        return len(self._workers)

    def deploy(self, **changes: Any) -> None:
        """Put the application there, its one deployment changed so."""
        application = {
            "name": APPLICATION,
            "import_path": "engine:app",
            "external_scaler_enabled": True,
            "deployments": [{"name": DEPLOYMENT, "num_replicas": 1, **changes}],
        }
        config = {"http_options": {"host": "127.0.0.1", "port": self._http}, "applications": [application]}
        self._ask("PUT", config).raise_for_status()

    def deployment(self) -> dict[str, Any]:
        """What Serve says about the deployment; empty while it is not there."""
        applications = self._ask("GET").raise_for_status().json()["applications"]
        found: dict[str, Any] = applications.get(APPLICATION, {}).get("deployments", {}).get(DEPLOYMENT, {})
        return found

    def target(self) -> int | None:
        """How many replicas Serve is to have."""
        target: int | None = self.deployment().get("target_num_replicas")
        return target

    def limit(self) -> int | None:
        """The deployment's max_ongoing_requests."""
        limit: int | None = self.deployment().get("deployment_config", {}).get("max_ongoing_requests")
        return limit

    @property
    def url(self) -> str:
        """Where the application is served."""
        return f"http://127.0.0.1:{self._http}/"

    def _start(self, pod: str, *options: str) -> Program:
        always = ("--block", "--disable-usage-stats", f"--object-store-memory={_MEMORY}")
        # KubeRay sets the pod's name so.
        settings = {**_SETTINGS, "RAY_CLOUD_INSTANCE_ID": pod, "PATH": f"{self._ray.parent}:{os.environ['PATH']}"}
        # Ray gives a new node 15 s to start its agent, so on a busy machine it goes first, where that is allowed.
        return self._stage.cluster.run(pod, ["nice", "-n", "-10", self._ray, "start", *always, *options], settings)

    def _revive(self, program: Program) -> None:
        """Start a node anew that has ended, as a kubelet would, or that did not come up.

        On a busy machine a part of Ray may give up after 15 s, and another wait for it for ever.
        """
        now = time.monotonic()
        late = now - self._began.setdefault(program.name, now) > _START_S
        if program.pid is None or (late and _STARTED not in program.log.read_text(errors="replace")):
            program.stop()
            program.start()
            self._began[program.name] = now

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

    def _ask(self, method: str, body: Any = None) -> httpx.Response:
        url = f"http://{self._address}:{self._dashboard}/api/serve/applications/"
        return httpx.request(method, url, json=body, timeout=60.0, trust_env=False)

    def _answers(self) -> bool:
        try:
            return self._ask("GET").status_code < 500
        except httpx.TransportError:
            return False
