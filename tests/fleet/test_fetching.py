"""What all pages on their way may hold together."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from yarl import URL

from scaler.sources.access import Access
from scaler.sources.fetching import Fetcher, FetchError
from tests.fleet.web import SOON, PodServer

PART = b"#" * 600_000


async def test_pages_that_together_are_too_large_are_refused_until_there_is_room_again() -> None:
    finish = asyncio.Event()

    async def in_two_parts(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(PART)
        if request.path == "/first":
            await finish.wait()
        return answer

    async with PodServer(in_two_parts) as pod:
        fetcher = Fetcher(Access(), max_total_bytes=1_000_000)
        first = asyncio.create_task(fetcher.read(URL(f"http://127.0.0.1:{pod.port}/first"), len))
        second = URL(f"http://127.0.0.1:{pod.port}/second")
        async with asyncio.timeout(SOON):
            with pytest.raises(FetchError, match="too many large pages at once"):
                await read_until_refused(fetcher, second)
            finish.set()
            assert await first == len(PART)
            assert await fetcher.read(second, len) == len(PART)
        await fetcher.close()


async def read_until_refused(fetcher: Fetcher, url: URL) -> None:
    """As soon as a part of the other page has arrived there is no room for this one."""
    while True:
        assert await fetcher.read(url, len) == len(PART)
