"""A pod for tests that look at the wire: its page is whatever the test answers, and it counts what reaches it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

from aiohttp import web

from scaler.sources.source import Endpoint

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

SOON = 30.0
"""A deadline that no test reaches, in seconds."""

PAGE = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 7.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 900.0
"""


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until `condition` holds, at most `SOON`."""
    async with asyncio.timeout(SOON):
        while not await condition():  # noqa: ASYNC110 - what is waited for happens on the wire
            await asyncio.sleep(0.005)


async def page(request: web.BaseRequest) -> web.StreamResponse:
    """Answer as a pod without the filtered page does."""
    return web.Response(text=PAGE) if request.path == "/metrics" else web.Response(status=404)


async def filterable(request: web.BaseRequest) -> web.StreamResponse:
    """Answer as vLLM with one API server does."""
    if request.path == "/metrics":
        return web.Response(text=PAGE)
    names = request.query.getall("name[]")
    lines = [line for line in PAGE.splitlines(keepends=True) if line.partition("{")[0] in names]
    return web.Response(text="".join(lines))


class PodServer:
    """Serves one pod on loopback, as an async context manager."""

    def __init__(self, answer: Answer = page, *, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.connections = 0
        """Connections taken since the start."""
        self.asked: list[web.BaseRequest] = []
        """All requests, also those that were not answered."""
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._http = web.Server(self._take, handler_cancellation=True)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(self._connect, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._http.shutdown(0.1)  # zero would wait for ever

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, without their queries."""
        return [request.path for request in self.asked]

    async def was_asked(self) -> bool:
        return bool(self.asked)

    def endpoint(self, pod: str = "chat-0", uid: str = "u0") -> Endpoint:
        return Endpoint(pod, uid, "127.0.0.1", self.port)

    def _connect(self) -> asyncio.Protocol:
        self.connections += 1
        return self._http()

    async def _take(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        return await self.answer(request)
