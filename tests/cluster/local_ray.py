"""A real Ray with Serve on this machine, without a cluster around it: a head and workers, each with its own address."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.cluster.programs import Ports, Program, stop_all, wait_for
from tests.cluster.ray_node import RayNode, Serve

_T = TypeVar("_T")
_SOON_S = 180.0


class LocalRay:
    """A context manager. `cpus` are those that Ray may give away on each node, the head first.

    Requests come by way of the head only.
    """

    def __init__(self, *cpus: int) -> None:
        self._cpus = cpus
        self._ports = Ports()
        self._programs: list[Program] = []
        self._logs = tempfile.TemporaryDirectory(prefix="ray-logs-")
        self._folder = tempfile.TemporaryDirectory(prefix="rt", dir="/tmp", ignore_cleanup_errors=True)
        gcs, client, dashboard, http = (self._ports.reserve("ray") for _ in range(4))
        network = self._ports.reserve_network().removesuffix(".0.0/16")
        self.addresses = [f"{network}.0.{i}" for i, _ in enumerate(cpus, 1)]
        self.metrics = [f"{address}:{self._ports.reserve('metrics')}" for address in self.addresses]
        """Of each node: where its metrics page is."""
        self.serve = Serve(f"127.0.0.1:{dashboard}", http, proxies="HeadOnly")
        self._head = (
            "--head",
            f"--port={gcs}",
            f"--ray-client-server-port={client}",
            "--dashboard-host=127.0.0.1",
            f"--dashboard-port={dashboard}",
            f"--temp-dir={self._folder.name}",
        )
        self._worker = (f"--address={self.addresses[0]}:{gcs}",)

    def __enter__(self) -> Self:
        for i, cpus in enumerate(self._cpus):
            node = RayNode(
                self._run,
                f"node-{i}",
                *(self._worker if i else self._head),
                f"--node-ip-address={self.addresses[i]}",
                f"--metrics-export-port={self.metrics[i].rpartition(':')[2]}",
                f"--num-cpus={cpus}",
            )
            self.wait_for(f"node {i}", lambda node=node: node.revive() or (node.is_up and self.serve.answers()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_all(reversed(self._programs))
        for folder in (self._folder, self._logs):
            folder.cleanup()
        self._ports.release()

    def wait_for(self, what: str, condition: Callable[[], _T | None]) -> _T:
        """The first true value of the condition."""
        return wait_for(what, condition, timeout_s=_SOON_S)

    def controller_log(self) -> str:
        """What Serve's controller has said."""
        logs = Path(self._folder.name).glob("session_latest/logs/serve/controller_[0-9]*.log")
        return "".join(log.read_text() for log in logs)

    def _run(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> Program:
        program = Program(name, command, Path(self._logs.name) / name, environment)
        program.start()
        self._programs.append(program)
        return program
