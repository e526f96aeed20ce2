"""One scaler as a whole: targets that tick, the gRPC server and the HTTP side, started and stopped together.

`vllm-scaler serve`, the demo and the tests all run this; they differ in where pods and samples come from.
"""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog
from prometheus_client import CollectorRegistry

from scaler.serving.address import Address
from scaler.serving.http import HttpSide
from scaler.serving.metrics import RpcMetrics, TargetMetrics
from scaler.serving.server import Server
from scaler.serving.tls import TlsFiles, server_credentials
from scaler.targets import Targets

log = structlog.get_logger(__name__)


def calm_collector() -> None:
    """Let Python look for garbage in old objects seldom.

    Those are the history of every target, in which there are no cycles, and to walk through it takes 0.3 s with a
    thousand targets: once in minutes instead of once in seconds is enough.
    """
    gc.set_threshold(700, 10, 1000)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where to listen. Port 0 takes a free one."""

    grpc: Address
    http: Address
    tls: TlsFiles | None = None
    """For the gRPC port; the HTTP port is plain, as probes and Prometheus expect it."""


class Host:
    """Runs targets and answers for them, between `async with`'s start and end."""

    def __init__(self, targets: Targets, ports: Ports) -> None:
        self._targets = targets
        self._ports = ports
        self.registry = CollectorRegistry()
        """Where further families may be registered."""
        metrics = TargetMetrics(targets)
        self.registry.register(metrics)
        targets.world.observers.append(metrics.note)
        self._server = Server(targets, RpcMetrics(self.registry))
        self._http = HttpSide(self.registry, lambda: self._not_ready)
        self._not_ready = "starting"
        self._ticking: asyncio.Task[None] | None = None
        self.grpc_address, self.http_address = ports.grpc, ports.http
        """Where it really listens, once started."""

    async def __aenter__(self) -> Self:
        """Listen and tick, as a standby. Raises OSError or TlsError when a port or a certificate cannot be had."""
        credentials = server_credentials(self._ports.tls) if self._ports.tls else None
        grpc_port = await self._server.start(self._ports.grpc, credentials)
        self.grpc_address = self._ports.grpc.with_port(grpc_port)
        try:
            http_port = await self._http.start(self._ports.http)
        except OSError:
            await self._server.stop()
            raise
        self.http_address = self._ports.http.with_port(http_port)
        self._ticking = asyncio.create_task(self._targets.run(), name="targets")
        self._not_ready = "standby: another replica leads"
        log.info("listening", grpc=str(self.grpc_address), http=str(self.http_address), tls=bool(credentials))
        return self

    async def lead(self) -> None:
        """Be the replica that KEDA asks: ready for probes, SERVING for health checks."""
        self._not_ready = ""
        await self._server.serve(True)

    async def wait(self, stop: asyncio.Event) -> None:
        """Return when `stop` is set. Raises what ended the ticking, should it end before."""
        assert self._ticking is not None, "wait is for within `async with`"
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({self._ticking, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        if self._ticking.done():
            self._ticking.result()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Not ready at once; streams end with OK, calls finish, then the ports close and the ticking ends."""
        self._not_ready = "stopping"
        await self._server.stop()
        await self._http.stop()
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
