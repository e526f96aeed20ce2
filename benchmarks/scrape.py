"""Asking pods for their pages over HTTP and reading them: pods a second on one core, against httpx in the same run.

The pods are one process that answers from memory, so that what is measured is the asking side. Each way is
measured by the processor time that it takes, which a busy machine does not falsify.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import httpx
import uvloop

from benchmarks import Row
from scaler.exposition import read_page
from scaler.exposition.sample import Sample
from scaler.sources.pods import PodSource
from scaler.sources.source import Endpoint, ReadOptions

PAGE = Path(__file__).parent.parent / "tests/data/metrics/vllm-metrics-loaded.txt"
PODS = 200
ROUNDS = 20
WARM_UP_ROUNDS = 3
"""To connect, to probe for the filtered page, and to fill the caches."""
NAME = re.compile(rb"[?&]name%5B%5D=([^& ]+)")

Ask = Callable[[], Awaitable[None]]


class _Pod(asyncio.Protocol):
    """Answers `/metrics`, and `/metrics/` where it can filter, from memory."""

    page = PAGE.read_bytes()
    filtered: dict[bytes, bytes] = {}  # noqa: RUF012 - one for all pods on purpose

    def __init__(self, filters: bool) -> None:
        self._filters = filters
        self._write: Callable[[bytes], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast(asyncio.Transport, transport).write

    def data_received(self, data: bytes) -> None:
        target = data[4 : data.index(b" HTTP/1.1\r\n")]
        if target == b"/metrics":
            self._write(_answer(b"200 OK", self.page))
        elif self._filters:
            if target not in self.filtered:
                self.filtered[target] = _only(self.page, target)
            self._write(_answer(b"200 OK", self.filtered[target]))
        else:
            self._write(_answer(b"404 Not Found", b""))


def _answer(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def _only(page: bytes, target: bytes) -> bytes:
    """The lines of the samples that the question names."""
    names = {name.replace(b"%3A", b":") for name in NAME.findall(target)}
    return b"".join(line for line in page.splitlines(keepends=True) if re.split(rb"[{ ]", line, maxsplit=1)[0] in names)


def _serve(connection: Connection) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(partial(_Pod, filters), "127.0.0.1", 0)
            for filters in (False, True)
            for _ in range(PODS)
        ]
        connection.send([server.sockets[0].getsockname()[1] for server in servers])
        await asyncio.to_thread(connection.recv)

    uvloop.run(serve())


@contextmanager
def pods() -> Iterator[tuple[list[Endpoint], list[Endpoint]]]:
    """Pods that serve full pages only, and pods that can filter, in a process of their own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        ports = here.recv()
        endpoints = [Endpoint(f"pod-{i}", f"uid-{i}", "127.0.0.1", port) for i, port in enumerate(ports)]
        yield endpoints[:PODS], endpoints[PODS:]
        here.send("stop")
        process.join()
    finally:
        process.kill()


async def _pods_a_second(ask: Ask, rounds: int) -> float:
    """Pods read for each second of processor time."""
    for _ in range(WARM_UP_ROUNDS):
        await ask()
    began = time.process_time()
    for _ in range(rounds):
        await ask()
    return PODS * rounds / (time.process_time() - began)


async def _with_source(endpoints: list[Endpoint]) -> float:
    source = PodSource()

    async def ask() -> None:
        said = await source.sample(endpoints, ReadOptions(), 60.0)
        assert all(isinstance(sample, Sample) for sample in said.values())

    try:
        return await _pods_a_second(ask, ROUNDS)
    finally:
        await source.close()


async def _with_httpx(endpoints: list[Endpoint]) -> float:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=None)
    async with httpx.AsyncClient(limits=limits, timeout=60.0, trust_env=False) as client:

        async def read(endpoint: Endpoint) -> Sample:
            answer = await client.get(f"http://{endpoint.host}:{endpoint.port}/metrics")
            return read_page(answer.content, None)

        async def ask() -> None:
            await asyncio.gather(*map(read, endpoints))

        return await _pods_a_second(ask, 2)


async def _measure() -> tuple[float, float, float]:
    with pods() as (full, filtering):
        return await _with_source(full), await _with_source(filtering), await _with_httpx(full)


def rows() -> Iterator[Row]:
    full, filtered, plain = uvloop.run(_measure())
    size = f"{PAGE.stat().st_size / 1000:.0f} KB"
    for what, ours, least in ((f"full pages of {size}", full, 2000), ("filtered pages", filtered, 4000)):
        yield Row(
            what=f"ask {PODS} pods over HTTP and read their {what}",
            measured=f"{ours:,.0f} pods/s on one core",
            beside=f"{plain:,.0f} pods/s, httpx and full pages",
            ratio=ours / plain,
            budget=f"≥ {least:,} pods/s",
            held=ours >= least,
        )
