"""One node of a real Ray as a process, and what its head answers about Serve."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.cluster import ray_installation
from tests.cluster.programs import Program

APP = Path(__file__).with_name("ray_app")
_ROOT = Path(__file__).parents[2]
_MEMORY = 80_000_000
_START_S = 60.0
_STARTED = "Ray runtime started."

Run = Callable[[str, Sequence[str | Path], Mapping[str, str]], Program]
"""Starts a program of a name by a command with further variables of the environment."""


class RayNode:
    """A `ray start` that runs beside a test."""

    def __init__(self, run: Run, name: str, *options: str, **settings: str) -> None:
        """`options` are those of `ray start`, `settings` variables of the environment."""
        ray = ray_installation.python().with_name("ray")
        always = ("--block", "--disable-usage-stats", f"--object-store-memory={_MEMORY}")
        environment = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",  # else it kills where the machine is full of other things
            "RAY_metrics_report_interval_ms": "1000",
            "PYTHONPATH": f"{APP}:{_ROOT}",
            "PATH": f"{ray.parent}:{os.environ['PATH']}",
            **settings,
        }
        # Ray gives a new node 15 s to start its agent, so on a busy machine it goes first, where that is allowed.
        self.program = run(name, ["nice", "-n", "-10", ray, "start", *always, *options], environment)
        self._began = time.monotonic()

    @property
    def is_up(self) -> bool:
        """Whether it says that it has started."""
        return self.program.pid is not None and _STARTED in self.program.log.read_text(errors="replace")

    def revive(self) -> None:
        """Start it anew where it has ended, as a kubelet would, or did not come up.

        On a busy machine a part of Ray may give up after 15 s, and another wait for it for ever.
        """
        late = time.monotonic() - self._began > _START_S
        if self.program.pid is None or (late and not self.is_up):
            self.program.stop()
            self.program.start()
            self._began = time.monotonic()


class Serve:
    """Serve's part of a head's dashboard; `http_port` is where its applications shall be."""

    def __init__(self, dashboard: str, http_port: int, proxies: str = "EveryNode") -> None:
        self._proxies = proxies
        self._url = f"http://{dashboard}/api/serve/applications/"
        self._http_port = http_port

    @property
    def url(self) -> str:
        """Where applications are served."""
        return f"http://127.0.0.1:{self._http_port}/"

    def answers(self) -> bool:
        """Whether the dashboard does."""
        try:
            return self._ask("GET").status_code < 500
        except httpx.TransportError:
            return False

    def deploy(self, *applications: Mapping[str, Any]) -> None:
        """Let these be the applications. Raises RuntimeError with what is wrong with them."""
        options = {"host": "127.0.0.1", "port": self._http_port}
        answer = self._ask(
            "PUT", {"proxy_location": self._proxies, "http_options": options, "applications": applications}
        )
        if answer.is_error:
            raise RuntimeError(answer.text)

    def application(self, name: str) -> dict[str, Any]:
        """What is said about an application; empty while it is not there."""
        found: dict[str, Any] = self._ask("GET").raise_for_status().json()["applications"].get(name, {})
        return found

    def deployment(self, application: str, name: str) -> dict[str, Any]:
        """What is said about a deployment; empty while it is not there."""
        found: dict[str, Any] = self.application(application).get("deployments", {}).get(name, {})
        return found

    def _ask(self, method: str, body: Any = None) -> httpx.Response:
        return httpx.request(method, self._url, json=body, timeout=60.0, trust_env=False)
