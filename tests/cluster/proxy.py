"""A TCP proxy between a client and the API server that can swallow everything, as a broken network does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Self

import yaml

from tests.cluster.control_plane import ControlPlane


class Proxy:
    """An async context manager. While `swallows` is set, connections stay open and nothing passes through them."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path) -> None:
        self.swallows = False
        self.kubeconfig = kubeconfig
        """Leads to the API server by way of the proxy, with the administrator's rights."""
        self._plane = plane
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        config = yaml.safe_load(self._plane.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        self.kubeconfig.write_text(yaml.safe_dump(config))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._plane.port)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        swallowed = False
        try:
            while data := await source.read(2**16):
                swallowed |= self.swallows  # what has lost a part stays lost: TLS could not go on after it
                if not swallowed:
                    sink.write(data)
                    await sink.drain()
        finally:
            if not swallowed:
                sink.close()
