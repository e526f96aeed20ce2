"""Records a real engine's metrics page: before any request, while a queue is worked off, and after it.

``python -m tests.real_engine.record_pages FOLDER`` writes ``vllm-metrics-{fresh,loaded,drained}.txt``.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.real_engine import load
from tests.real_engine.engine import RealEngine
from tests.real_engine.reference import Reference

REQUESTS = 64
TOKENS = 200
"""Each request's answer; the engine needs seconds for all, so that the queue is seen to shrink."""
_PAUSE_S = 0.05
_DRAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Pages:
    """What the page said, and what the engine's clients know about the same time."""

    fresh: bytes
    loaded: tuple[bytes, ...]
    """While the requests were worked off, in order."""
    drained: bytes
    answers: load.Answers

    def every(self) -> tuple[bytes, ...]:
        """All pages, in order."""
        return (self.fresh, *self.loaded, self.drained)


async def record(url: str) -> Pages:
    """Record an engine that has served nothing yet; `url` is its address without a path."""
    async with aiohttp.ClientSession(f"{url}/", raise_for_status=True) as session:
        fresh = await _page(session)
        loaded: list[bytes] = []
        sending = asyncio.create_task(load.send(url, requests=REQUESTS, tokens=TOKENS))
        while not sending.done():
            loaded.append(await _page(session))
            await asyncio.wait([sending], timeout=_PAUSE_S)
        return Pages(fresh, tuple(loaded), await _drained(session), sending.result())


async def _drained(session: aiohttp.ClientSession) -> bytes:
    """The first page on which nothing runs: the gauges follow the last answer by a step of the engine."""
    end = time.monotonic() + _DRAIN_S
    while Reference(page := await _page(session)).value("vllm:num_requests_running") > 0:
        if time.monotonic() > end:
            raise TimeoutError(f"requests are said to run {_DRAIN_S:g} s after the last answer")
        await asyncio.sleep(_PAUSE_S)
    return page


async def _page(session: aiohttp.ClientSession) -> bytes:
    async with session.get("metrics") as answer:
        return await answer.read()


def main(folder: Path) -> None:
    """Write one page of each kind; the loaded one is the one with the longest queue."""
    with RealEngine() as engine:
        pages = asyncio.run(record(engine.url))
    longest = max(pages.loaded, key=lambda page: Reference(page).value("vllm:num_requests_waiting"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in {"fresh": pages.fresh, "loaded": longest, "drained": pages.drained}.items():
        (folder / f"vllm-metrics-{name}.txt").write_bytes(page)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.real_engine.record_pages FOLDER")
    main(Path(sys.argv[1]))
