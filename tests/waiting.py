"""Waiting for what a test expects, with a deadline that a busy machine does not miss; and work beside a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any


async def until(condition: Callable[[], object], what: str, *, timeout_s: float = 30.0) -> None:
    """Return when `condition` is true. Raises TimeoutError that names `what` was missed."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        await asyncio.sleep(0.01)


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` beside the block, cancel it at the end, and raise what it raised."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
