"""Requests to a real engine, as clients send them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from tests.real_engine.engine import MODEL

_PATIENCE = aiohttp.ClientTimeout(total=240)


@dataclass(frozen=True, slots=True)
class Answers:
    """What the engine told its clients that it did for them."""

    requests: int
    prompt_tokens: int
    generated_tokens: int


async def send(url: str, *, requests: int, tokens: int) -> Answers:
    """Send all requests at once, each for so many tokens, and wait for the answers. Raises aiohttp.ClientError."""
    async with _session() as session:
        usages = await asyncio.gather(*(_ask(session, url, f"Request {i}:", tokens) for i in range(requests)))
    return Answers(
        requests=len(usages),
        prompt_tokens=sum(usage["prompt_tokens"] for usage in usages),
        generated_tokens=sum(usage["completion_tokens"] for usage in usages),
    )


@asynccontextmanager
async def clients(url: str, *, count: int, tokens: int) -> AsyncIterator[None]:
    """So many clients ask again and again while the context lasts; at its end they wait for their last answers.

    A server that breaks off ends a client, not the test.
    """
    last = asyncio.Event()

    async def client(session: aiohttp.ClientSession, number: int) -> None:
        while not last.is_set():
            await _ask(session, url, f"Client {number}:", tokens)

    async with _session() as session:
        tasks = [asyncio.create_task(client(session, number)) for number in range(count)]
        try:
            yield
        finally:
            last.set()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if not isinstance(end, aiohttp.ClientError | None):
            raise end


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=_PATIENCE, connector=aiohttp.TCPConnector(limit=0), raise_for_status=True)


async def _ask(session: aiohttp.ClientSession, url: str, prompt: str, tokens: int) -> dict[str, int]:
    """Token counts of one answer, which is exactly as long as asked for."""
    body = {"model": MODEL, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True}
    async with session.post(f"{url}/v1/completions", json=body) as answer:
        usage: dict[str, int] = (await answer.json())["usage"]
        return usage
