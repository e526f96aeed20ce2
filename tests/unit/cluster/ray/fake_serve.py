"""Ray Serve's REST API in the test's own process: one application, whose replicas a test moves by hand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]

SCALE = "/api/v1/applications/{application}/deployments/{deployment}/scale"


@dataclass
class FakeServe:
    """Deployment `engine` of application `llm`, as an async context manager. `port` is the dashboard's."""

    target: int = 1
    external: bool = True
    token: str = ""
    """The only token that is taken, where there is one."""
    broken: int = 0
    """A status to answer with instead."""
    replicas: list[Json] = field(default_factory=list)
    proxies: Json = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    """Every target that was sent."""
    port: int = 0
    hung: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while looks are answered."""

    async def __aenter__(self) -> Self:
        self.hung.set()
        app = web.Application()
        app.router.add_get("/api/serve/applications/", self._look)
        app.router.add_post(SCALE, self._scale)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hung.set()
        await self._runner.cleanup()

    def run(self, *pods: str, state: str = "RUNNING") -> None:
        """Have a replica in that state on each pod; `""` is not placed yet."""
        self.replicas += [{"state": state, **({"node_instance_id": pod} if pod else {})} for pod in pods]

    def _refused(self, request: web.Request) -> web.Response | None:
        if self.broken:
            return web.Response(status=self.broken, text="something broke")
        given = request.headers.get("Authorization")
        if self.token and given != f"Bearer {self.token}":
            text = "Forbidden: Invalid authentication token" if given else "Unauthorized: Missing authentication token"
            return web.Response(status=403 if given else 401, text=text)
        return None

    async def _look(self, request: web.Request) -> web.Response:
        await self.hung.wait()
        deployment = {"target_num_replicas": self.target, "replicas": self.replicas}
        found = {"applications": {"llm": {"deployments": {"engine": deployment}}}, "proxies": self.proxies}
        return self._refused(request) or web.json_response(found)

    async def _scale(self, request: web.Request) -> web.Response:
        if (refused := self._refused(request)) is not None:
            return refused
        if not self.external:
            return web.json_response({"error": "Cannot update replicas: The external scaling API can only"}, status=412)
        self.target = (await request.json())["target_num_replicas"]
        self.asked.append(self.target)
        return web.json_response({"message": "Scaling request received."})
