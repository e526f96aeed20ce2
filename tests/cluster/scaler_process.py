"""`vllm-scaler serve` beside a cluster, as a process that a test may kill."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping

import grpc
import httpx
import yaml

from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from tests.cluster.control_plane import ControlPlane
from tests.protocol.process import COMMAND

_CALL_S = 5.0


class ScalerProcess:
    """It has the administrator's rights and serves all namespaces; `policies` are the operator's, by name."""

    def __init__(self, plane: ControlPlane, policies: Mapping[str, Mapping[str, str]]) -> None:
        self._plane = plane
        self.address, self._http = (f"127.0.0.1:{plane.reserve_port('vllm-scaler')}" for _ in range(2))
        file = plane.folder / "policies.yaml"
        file.write_text(yaml.safe_dump({name: dict(values) for name, values in policies.items()}))
        options = {
            "kubeconfig": plane.kubeconfig,
            "listen": self.address,
            "http-listen": self._http,
            "address": self.address,
            "policies": file,
        }
        self._program = plane.run(
            "vllm-scaler",
            [*COMMAND, "serve", *(f"--{name}={value}" for name, value in options.items())],
            {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._channel = grpc.insecure_channel(self.address)
        self._insight = InsightStub(self._channel)
        self._wait_until_ready()

    def kill(self) -> None:
        """End it as the kernel does when memory is short."""
        assert self._program.pid is not None
        os.kill(self._program.pid, signal.SIGKILL)
        self._program.finish(time.monotonic() + _CALL_S)

    def start(self) -> None:
        """Begin anew, knowing nothing."""
        self._program.start()
        self._wait_until_ready()

    def close(self) -> None:
        """End it for good."""
        self._channel.close()
        self._plane.programs.pop(self._program.name).stop()

    def explain(self, namespace: str, name: str, trigger: str = "") -> pb.Explanation | None:
        """Its latest decision; None where it has none, or does not answer."""
        try:
            return self._insight.Explain(
                pb.TargetRef(namespace=namespace, name=name, trigger=trigger), timeout=_CALL_S, wait_for_ready=True
            )
        except grpc.RpcError:
            return None

    def _wait_until_ready(self) -> None:
        self._plane.wait_for("a ready scaler", self._is_ready)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"http://{self._http}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False
