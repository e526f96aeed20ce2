"""`vllm-scaler serve` beside a cluster, as a process that a test may kill."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.asking import Asking
from tests.cluster.control_plane import ControlPlane
from tests.protocol.process import COMMAND

_END_S = 5.0


class ScalerProcess(Asking):
    """It has the administrator's rights and serves all namespaces; `policies` are the operator's, by name.

    `options` are more of `serve`'s, `command` is what runs vllm-scaler, `kubeconfig` another way to the same API
    server.
    """

    def __init__(
        self,
        plane: ControlPlane,
        policies: Mapping[str, Mapping[str, str]],
        *options: str,
        command: Sequence[str | Path] = COMMAND,
        kubeconfig: Path | None = None,
    ) -> None:
        self._plane = plane
        listen, self._http = (f"127.0.0.1:{plane.reserve_port('vllm-scaler')}" for _ in range(2))
        super().__init__(listen)
        file = plane.folder / "policies.yaml"
        file.write_text(yaml.safe_dump({name: dict(values) for name, values in policies.items()}))
        own = {
            "kubeconfig": kubeconfig or plane.kubeconfig,
            "listen": listen,
            "http-listen": self._http,
            "address": listen,
            "policies": file,
        }
        self._program = plane.run(
            "vllm-scaler",
            [*command, "serve", *(f"--{name}={value}" for name, value in own.items()), *options],
            {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._wait_until_ready()

    def kill(self) -> None:
        """End it as the kernel does when memory is short."""
        assert self._program.pid is not None
        os.kill(self._program.pid, signal.SIGKILL)
        self._program.finish(time.monotonic() + _END_S)

    def start(self) -> None:
        """Begin anew, knowing nothing."""
        self._program.start()
        self._wait_until_ready()

    def close(self) -> None:
        """End it for good."""
        super().close()
        self._plane.programs.pop(self._program.name).stop()

    def page_bytes(self, namespace: str, name: str) -> float:
        """How many bytes of its pods' pages it has read for a ScaledObject, as its own metrics say."""
        text = httpx.get(f"http://{self._http}/metrics", trust_env=False).text
        (family,) = (each for each in text_string_to_metric_families(text) if each.name == "vllm_scaler_page_bytes")
        target = {"namespace": namespace, "scaled_object": name}
        return sum(sample.value for sample in family.samples if target.items() <= sample.labels.items())

    def _wait_until_ready(self) -> None:
        self._plane.wait_for("a ready scaler", self._is_ready)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"http://{self._http}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False
