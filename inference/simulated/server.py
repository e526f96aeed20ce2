"""The pods of a fleet as HTTP servers on the loopback interface, each with an address and a page, vLLM's or SGLang's.

While a pod starts, its address refuses connections; once it is ready it serves `/metrics`, `/metrics/` (which takes
`?name[]=…`), `/health` and `/version`, until it is gone. The fleet's time is what `clock` says, so that a clock that
runs at N times real time plays the fleet at that speed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Literal, Self

from aiohttp import web

from inference.simulated.faults import ENDLESS_CHUNK, Fault, spoil
from inference.simulated.fleet import Fleet, Outcome, Pod, PodState
from inference.simulated.page import Page
from inference.simulated.sglang_page import SglangPage

Address = tuple[str, int]
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_PAGE = "text/plain; version=1.0.0; charset=utf-8"
_PAGE_UNDER_SLASH = "text/plain; version=0.0.4; charset=utf-8"
_PLAY_EVERY_S = 0.02
"""Real seconds between two moves of the fleet; a read of a page moves it too."""
_CUT_AFTER_S = 0.05
"""Real seconds that a pod's last answers get when it goes. To aiohttp, 0 means without end."""


def free_ports() -> Iterator[Address]:
    """Addresses for pods on 127.0.0.1, each with a free port."""
    while True:
        yield "127.0.0.1", 0


def loopback_ips(network: str, port: int) -> Iterator[Address]:
    """Addresses for pods with one port, each with its own IP of a loopback network such as 127.1.0.0/24."""
    for ip in ipaddress.ip_network(network).hosts():
        yield str(ip), port


class FleetServer:
    """Serves the pods of a fleet over HTTP, as an async context manager; pods come and go with the fleet.

    `fleet` may be told to add, drain, kill or scale at any time from the same event loop, at `clock()`.
    """

    def __init__(
        self,
        fleet: Fleet,
        clock: Callable[[], float],
        *,
        addresses: Iterable[Address] | None = None,
        model_name: str = "simulated",
        dialect: Literal["vllm", "sglang"] = "vllm",
        multi_process: bool = False,
        slow_s: float = 5.0,
    ) -> None:
        """`multi_process` is for vLLM's page; SGLang's is always of several processes."""
        self.fleet = fleet
        self.outcomes: list[Outcome] = []
        """The requests that have ended."""
        self.faults: dict[str, Fault] = {}
        """Pod name → what is wrong with it."""
        self._clock = clock
        self._addresses = iter(addresses or free_ports())
        self._model_name = model_name
        self._dialect = dialect
        self._multi_process = multi_process
        self._slow_s = slow_s
        """How late a pod with the fault "slow" answers, in real seconds."""
        self._doors: dict[str, _Door] = {}
        self._player: asyncio.Task[None] | None = None
        self._playing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.play()
        self._player = asyncio.create_task(self._keep_playing())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._player is not None:
            self._player.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._player
        await asyncio.gather(*(door.close() for door in self._doors.values()))
        self._doors.clear()

    def address(self, pod: str) -> str:
        """`host:port` of a pod that is not gone; KeyError for any other."""
        return self._door(self.fleet.pods[pod]).address

    @property
    def addresses(self) -> dict[str, str]:
        """Pod name → `host:port`, for all pods that are not gone."""
        return {name: self.address(name) for name in self.fleet.pods}

    async def play(self) -> None:
        """Move the fleet to the clock's time, and open and close the pods' addresses accordingly."""
        async with self._playing:
            self.outcomes += self.fleet.advance(self._clock())
            for pod in list(self.fleet.pods.values()):
                door = self._door(pod)
                if pod.state is not PodState.STARTING and not door.open:
                    await door.start()
            for name in [name for name in self._doors if name not in self.fleet.pods]:
                self.faults.pop(name, None)
                await self._doors.pop(name).close()

    async def _keep_playing(self) -> None:
        while True:
            await asyncio.sleep(_PLAY_EVERY_S)
            await self.play()

    def _door(self, pod: Pod) -> _Door:
        if pod.name not in self._doors:
            page = self._page(pod)
            self._doors[pod.name] = _Door(next(self._addresses), lambda request: self._answer(pod, page, request))
        return self._doors[pod.name]

    def _page(self, pod: Pod) -> Page | SglangPage:
        if self._dialect == "sglang":
            return SglangPage(pod.engine, model_name=self._model_name)
        return Page(
            pod.engine,
            model_name=self._model_name,
            started_unix_s=time.time(),
            multi_process=self._multi_process,
        )

    async def _answer(self, pod: Pod, page: Page | SglangPage, request: web.BaseRequest) -> web.StreamResponse:
        fault = self.faults.get(pod.name)
        if fault is Fault.HUNG:
            await asyncio.Event().wait()
        if fault is Fault.SLOW:
            await asyncio.sleep(self._slow_s)
        if fault is Fault.RESET:
            _reset(request)
        if fault is Fault.UNAVAILABLE:
            return web.json_response({"error": "the model is not available"}, status=503)
        match request.path:
            case "/metrics" | "/metrics/":
                return await self._answer_page(page, request, fault)
            case "/health":
                return web.Response()
            case "/version":
                return web.json_response({"version": "0.32.0"})
        return web.json_response({"detail": "Not Found"}, status=404)

    async def _answer_page(
        self, page: Page | SglangPage, request: web.BaseRequest, fault: Fault | None
    ) -> web.StreamResponse:
        self.outcomes += self.fleet.advance(self._clock())
        under_slash = request.path.endswith("/")
        content_type = _PAGE_UNDER_SLASH if under_slash else _PAGE
        if fault is Fault.ENDLESS:
            response = web.StreamResponse(headers={"Content-Type": content_type})
            await response.prepare(request)
            while True:
                await response.write(ENDLESS_CHUNK)
        names = request.query.getall("name[]", []) if under_slash else []
        text = page.render_only(names) if names else page.render()
        return web.Response(body=spoil(text, fault), headers={"Content-Type": content_type})


class _Door:
    """A pod's address: bound from the first moment, so that it is known; answering only when started."""

    def __init__(self, address: Address, answer: Answer) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(address)
        self._answer = answer
        self._runner: web.ServerRunner | None = None
        host, port = self._socket.getsockname()
        self.address = f"{host}:{port}"

    @property
    def open(self) -> bool:
        return self._runner is not None

    async def start(self) -> None:
        # A client that has gone ends its handler: else a hung pod would keep every request that it was sent.
        server = web.Server(self._answer, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=_CUT_AFTER_S)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._socket.close()


def _reset(request: web.BaseRequest) -> None:
    """Cut the connection with RST instead of FIN: a linger time of zero drops what is unsent."""
    transport = request.transport
    if transport is None:
        return
    connection: socket.socket = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
