"""What an engine is to the application that serves it: two implementations, vLLM and the simulated one."""

from __future__ import annotations

from typing import Protocol

from inference.asgi import Application
from inference.meter import Gauges


class Engine(Protocol):
    """One engine in this process."""

    async def start(self) -> Application:
        """Load the model and return its OpenAI-compatible API."""
        ...

    async def check(self) -> None:
        """Raise whatever it is that keeps the engine from serving."""
        ...

    def gauges(self) -> Gauges:
        """Say what is in it."""
        ...

    async def stop(self) -> None:
        """Let go of everything."""
        ...
