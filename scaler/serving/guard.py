"""What every RPC gets, whatever its service: a deadline, errors as status codes, a measured time, and an OK end.

One interceptor does it, so that servicers hold nothing but their few lines of translation.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import grpc
import structlog

from scaler.serving.metrics import RpcMetrics
from scaler.targets import SettingsError, Stale

log = structlog.get_logger(__name__)

DEADLINE_S = 3.0
"""The longest a unary call may take. KEDA sets no deadline of its own, and a call that hangs blocks its loops."""

STREAM_LIFE_S = 30 * 60.0
"""After this long a stream ends with OK, and KEDA opens it anew. Were it ended by the connection's own end, KEDA
would take that for a failure and stay away for up to a minute."""

QUIET_S = 0.01
QUIET_AT_MOST_S = 1.0
"""A server stops when no call has come for so long, or at last after the second: gRPC cancels what has arrived and is
not taken up yet when it stops, and KEDA would take that for a failure."""

LONGEST_MESSAGE = 2000
"""Bytes of a status message: it travels in the trailers, up to three times as long, and peers bound those at 8 KB."""

Handler = Any
"""A grpc.RpcMethodHandler."""


class Guard(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic only in the stub
    """Wraps every unary and every server-streaming method, each once."""

    def __init__(self, metrics: RpcMetrics, stopping: asyncio.Event, deadline_s: float = DEADLINE_S) -> None:
        self._metrics = metrics
        self._stopping = stopping
        self._deadline_s = deadline_s
        self._guarded: dict[str, Handler] = {}
        self._arrived_at = float("-inf")
        """When the last call came, on the loop's clock."""

    async def quiet(self) -> None:
        """Wait until no call comes for a moment."""
        clock = asyncio.get_running_loop().time
        end = clock() + QUIET_AT_MOST_S
        while True:
            await asyncio.sleep(QUIET_S)
            if clock() - self._arrived_at >= QUIET_S or clock() > end:
                return

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """The method's guarded handler; None, which answers UNIMPLEMENTED, for one that no service has."""
        self._arrived_at = asyncio.get_running_loop().time()
        method = handler_call_details.method
        if method not in self._guarded:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            self._guarded[method] = self._guard(method.removeprefix("/"), handler)
        return self._guarded[method]

    def _guard(self, method: str, handler: Handler) -> Handler:
        coders = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(self._unary(method, handler.unary_unary), **coders)
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(self._stream(method, handler.unary_stream), **coders)
        return handler  # reflection, whose client says when its stream ends

    def _unary(self, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def guarded(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            started = time.perf_counter()
            code = grpc.StatusCode.CANCELLED
            try:
                async with asyncio.timeout(self._deadline_s):
                    answer = await call(request, context)
                code = grpc.StatusCode.OK
                return answer
            except grpc.aio.AbortError:
                code = context.code()
                raise
            except Exception as error:
                code, text = self._status(method, error)
                await context.abort(code, text)
            finally:
                self._metrics.observe(method, code, time.perf_counter() - started)

        return guarded

    def _stream(self, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def answer(request: Any, context: _WholeWrites) -> None:
            if not inspect.isasyncgenfunction(call):
                await call(request, context)
                return
            async with aclosing(call(request, context)) as messages:
                async for message in messages:
                    await context.write(message)

        async def guarded(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            try:
                await _until(self._stopping, answer(request, _WholeWrites(context)), STREAM_LIFE_S)
            except grpc.aio.AbortError:
                raise
            except Exception as error:
                await context.abort(*self._status(method, error))

        return guarded

    def _status(self, method: str, error: Exception) -> tuple[grpc.StatusCode, str]:
        """The status code and the text that tell a client about an error."""
        match error:
            case SettingsError():
                code, text = grpc.StatusCode.INVALID_ARGUMENT, str(error)
            case Stale():
                code, text = grpc.StatusCode.UNAVAILABLE, str(error)
            case TimeoutError():
                code = grpc.StatusCode.DEADLINE_EXCEEDED
                text = f"{method} took longer than the server's deadline of {self._deadline_s:g} s"
            case _:
                log.error("rpc failed", method=method, exc_info=error)
                code, text = grpc.StatusCode.INTERNAL, f"a fault inside the scaler, see its log: {error!r}"
        return code, _shortened(text)


class _WholeWrites:
    """A stream's context whose writes end before a cancellation is heard.

    gRPC takes no status, and so no OK, while a write that was given up is still under way.
    """

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def write(self, message: Any) -> None:
        """Write a message."""
        writing = asyncio.ensure_future(self._context.write(message))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.gather(writing, return_exceptions=True)  # a client that has left is no news
            raise


def _shortened(text: str) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= LONGEST_MESSAGE:
        return text
    return encoded[: LONGEST_MESSAGE - 3].decode(errors="ignore") + "…"


async def _until(stopping: asyncio.Event, work: Coroutine[Any, Any, None], life_s: float) -> None:
    """Run `work` to its end, or until `stopping` is set, or for `life_s` seconds."""
    tasks = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait(tasks, timeout=life_s, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
