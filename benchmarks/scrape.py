"""Asking pods for their pages over HTTP and reading them: pods a second on one core, against httpx in the same run.

The pods are one process that answers from memory, so that what is measured is the asking side. Each way is
measured by the processor time that it takes, which a busy machine does not falsify.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvloop

from benchmarks import Row
from benchmarks._pods import Pages, serving
from scaler.exposition import read_page
from scaler.exposition.sample import Sample
from scaler.sources.pods import PodSource
from scaler.sources.source import Endpoint, ReadOptions

PAGE = Path(__file__).parent.parent / "tests/data/metrics/vllm-metrics-loaded.txt"
PODS = 200
ROUNDS = 20
WARM_UP_ROUNDS = 3
"""To connect, to probe for the filtered page, and to fill the caches."""

Ask = Callable[[], Awaitable[None]]


@contextmanager
def pods(filters: bool) -> Iterator[list[Endpoint]]:
    """Pods in a process of their own, which serve full pages only or can filter."""
    with serving(Pages([PAGE.read_bytes()], filters), [("127.0.0.1", 0)] * PODS) as (ports, _):
        yield [Endpoint(f"pod-{i}", f"uid-{i}", "127.0.0.1", port) for i, port in enumerate(ports)]


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
    with pods(filters=False) as full, pods(filters=True) as filtering:
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
