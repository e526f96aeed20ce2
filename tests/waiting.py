"""Waiting for what a test expects, with a deadline that a busy machine does not miss."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], object], what: str, *, timeout_s: float = 30.0) -> None:
    """Return when `condition` is true. Raises TimeoutError that names `what` was missed."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        await asyncio.sleep(0.01)
