"""An engine with its gate as one ASGI application: it has started when the engine has made its first token."""

from __future__ import annotations

import logging
import time

from inference.asgi import Receive, Scope, Send
from inference.engine import Engine
from inference.first_token import first_token
from inference.gate import Gate
from inference.settings import GateSettings
from scaler.policy import Load

log = logging.getLogger("ray.serve")


class Server:
    """For one engine. Whoever runs it must run its lifespan."""

    def __init__(self, engine: Engine, settings: GateSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._gate: Gate | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or the beginning and the end of the application's life."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._gate is not None:
            await self._gate(scope, receive, send)

    def load(self) -> Load | None:
        """Return this replica's load; None before it has started."""
        return None if self._gate is None else self._gate.load(self._engine.gauges())

    async def check(self) -> None:
        """Raise whatever it is that keeps the engine from serving."""
        await self._engine.check()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        began = time.monotonic()
        try:
            app = await self._engine.start()
            await first_token(app)
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
            return
        self._gate = Gate(app, self._settings, may_drain=False, is_warm=True)
        log.info("first token %.1fs after the engine was begun", time.monotonic() - began)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._engine.stop()
        await send({"type": "lifespan.shutdown.complete"})
