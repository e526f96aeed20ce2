"""The HTTP side: the scaler's own metrics for Prometheus, answers to the kubelet's probes, room for the page."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from scaler.serving.address import Address


@dataclass(frozen=True, slots=True)
class _Page(Collector):
    """What the metrics were at one moment."""

    families: Sequence[Metric]

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return self.families


class HttpSide:
    """The aiohttp application of the HTTP port, and the routes that it starts with."""

    def __init__(self, registry: CollectorRegistry, not_ready: Callable[[], str]) -> None:
        """`not_ready` says why the scaler is not ready to be asked; empty when it is."""
        self._registry = registry
        self._not_ready = not_ready
        self.app = web.Application()
        self.app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
            ]
        )
        self._runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=2.0)

    async def start(self, address: Address) -> int:
        """Listen; returns the port. Raises OSError when it cannot be had."""
        await self._runner.setup()
        try:
            await web.SockSite(self._runner, _socket(address)).start()
        except OSError as error:
            await self._runner.cleanup()
            raise OSError(f"cannot listen on {address} for HTTP: {error.strerror}") from error
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Answer what was asked, then close the port."""
        await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        page = _Page(tuple(self._registry.collect()))
        body = await asyncio.to_thread(encode, page)  # a thousand targets fill 2 MB, and KEDA is not to wait for that
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        reason = self._not_ready()
        return web.Response(text=f"{reason or 'ok'}\n", status=503 if reason else 200)


def _socket(address: Address) -> socket.socket:
    """Listen; `::` means every interface, by IPv4 too. Raises OSError."""
    if address.host != "::":
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family)
    if not socket.has_dualstack_ipv6():
        return socket.create_server(("", address.port))
    return socket.create_server(("", address.port), family=socket.AF_INET6, dualstack_ipv6=True)
