"""One scaler as a whole: targets that tick, the gRPC server and the HTTP side, started and stopped together.

`vllm-scaler serve`, the demo and the tests all run this; they differ in where pods and samples come from.
"""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog
from prometheus_client import CollectorRegistry

from scaler.serving.address import Address
from scaler.serving.http import HttpSide
from scaler.serving.metrics import RpcMetrics, TargetMetrics, show_leader
from scaler.serving.page import Page
from scaler.serving.server import Server
from scaler.serving.tls import Certificates, TlsFiles
from scaler.targets import Targets

log = structlog.get_logger(__name__)

STANDBY = "standby: another replica leads"


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
    page_token: Path | None = None
    """A file with the token that the live page asks for; None lets everyone look who reaches the HTTP port."""


class Host:
    """Runs targets and answers for them, between `async with`'s start and end."""

    def __init__(self, targets: Targets, ports: Ports) -> None:
        """Raises OSError when the page's token cannot be read."""
        self._targets = targets
        self._ports = ports
        self.registry = CollectorRegistry()
        """Where further families may be registered."""
        targets.world.observers.append(TargetMetrics(targets, self.registry).note)
        self._rpc_metrics = RpcMetrics(self.registry)
        show_leader(self.registry, lambda: not self._not_ready)
        self._certificates: Certificates | None = None
        self._server = Server(targets, self._rpc_metrics)
        self._http = HttpSide(self.registry, lambda: self._not_ready)
        Page(targets, lambda: self._not_ready, ports.page_token).add_to(self._http.app)
        self._not_ready = "starting"
        self._ticking: asyncio.Task[None] | None = None
        self.grpc_address, self.http_address = ports.grpc, ports.http
        """Where it really listens, once started."""

    async def __aenter__(self) -> Self:
        """Listen and tick, as a standby. Raises OSError or TlsError when a port or a certificate cannot be had."""
        self._certificates = Certificates(self._ports.tls) if self._ports.tls else None
        await self._listen(self._ports.grpc)
        try:
            http_port = await self._http.start(self._ports.http)
        except OSError:
            await self._server.stop()
            raise
        self.http_address = self._ports.http.with_port(http_port)
        self._ticking = asyncio.create_task(self._targets.run(), name="targets")
        self._not_ready = STANDBY
        tls = self._ports.tls is not None
        log.info("listening", grpc=str(self.grpc_address), http=str(self.http_address), tls=tls)
        return self

    def wait_for(self, what: str) -> None:
        """Have probes told what is waited for, until it leads or stands by."""
        self._not_ready = what

    async def lead(self) -> None:
        """Be the replica that KEDA asks: ready for probes, SERVING for health checks."""
        self._not_ready = ""
        await self._server.serve(True)

    async def stand_by(self) -> None:
        """Be no longer the one to ask, but stay warm.

        KEDA keeps its connection for as long as it stands; it is ended, streams with OK, so that KEDA dials anew and
        finds the replica that leads.
        """
        self._not_ready = STANDBY
        await self._server.stop()
        self._server = Server(self._targets, self._rpc_metrics)
        await self._listen(self.grpc_address)

    async def _listen(self, address: Address) -> None:
        credentials = self._certificates.credentials() if self._certificates else None
        self.grpc_address = address.with_port(await self._server.start(address, credentials))

    async def wait(self, stop: asyncio.Event, *others: asyncio.Task[None]) -> None:
        """Return when `stop` is set. Raises what ended the ticking or one of the others, should that come before."""
        assert self._ticking is not None, "wait is for within `async with`"
        running = (self._ticking, *others)
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({stopped, *running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        for task in running:
            if task.done():
                task.result()

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
