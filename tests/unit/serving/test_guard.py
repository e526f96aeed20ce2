"""How streams end: what is being written is written, whatever asks for the end meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from scaler.serving.guard import Guard
from scaler.serving.metrics import RpcMetrics


class SlowContext:
    """A stream's context on a slow connection: a write lasts until it is let through."""

    def __init__(self) -> None:
        self.writing, self.let_through = asyncio.Event(), asyncio.Event()
        self.written: list[Any] = []

    async def write(self, message: Any) -> None:
        self.writing.set()
        await self.let_through.wait()
        self.written.append(message)


async def _messages(request: Any, context: Any) -> AsyncIterator[str]:
    yield "one"
    await asyncio.Event().wait()


async def _writes_itself(request: Any, context: Any) -> None:
    await context.write("one")
    await asyncio.Event().wait()


@pytest.mark.parametrize("call", [_messages, _writes_itself])
async def test_a_write_under_way_is_finished_before_a_stream_ends(call: Callable[..., Any]) -> None:
    stopping, context = asyncio.Event(), SlowContext()
    guard = Guard(RpcMetrics(CollectorRegistry()), stopping)

    async def continuation(details: Any) -> Any:
        return grpc.unary_stream_rpc_method_handler(call)

    class Details:
        method = "/test/Stream"

    handler = await guard.intercept_service(continuation, Details())
    stream = asyncio.create_task(handler.unary_stream("request", context))
    async with asyncio.timeout(10):
        await context.writing.wait()
        stopping.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not stream.done()
        context.let_through.set()
        await stream
    assert context.written == ["one"]
