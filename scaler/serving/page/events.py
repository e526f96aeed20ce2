"""Server-sent events: a stream of named JSON messages that ends when the browser or the server goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
from aiohttp import web

MOST_STREAMS = 200
"""Open streams of one server: far more than people who look, few enough to cost nothing."""

_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # or nginx would hold events back
}


def event(name: str, data: Any) -> bytes:
    """One message; a number that is none (NaN) becomes null."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"


class Streams:
    """All open streams of a server."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._open = 0

    async def stop(self, _app: web.Application) -> None:
        """End them all; browsers come back to whoever answers then."""
        self._stopping.set()

    async def serve(self, request: web.Request, messages: AsyncIterator[bytes]) -> web.StreamResponse:
        """Send messages until they end, nobody takes them any more, or the server stops."""
        if self._open >= MOST_STREAMS:
            return web.json_response({"error": f"{MOST_STREAMS} pages are open already, close one"}, status=503)
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        self._open += 1
        sending = asyncio.ensure_future(_send(response, messages))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({sending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except ConnectionError:
            pass  # the browser has gone
        finally:
            self._open -= 1
            for task in (sending, stopping):
                task.cancel()
            await asyncio.gather(sending, stopping, return_exceptions=True)
        return response


async def _send(response: web.StreamResponse, messages: AsyncIterator[bytes]) -> None:
    async with aclosing(messages) as each:  # type: ignore[type-var]  # async generators, all of them
        async for message in each:
            await response.write(message)
