"""Reading a metrics page: `read_page` beside the parser of prometheus_client, which reads the page as a whole.

Both hand over values; only `read_page` also sums, checks and names them. "At first sight" is a page none of whose
series were seen before; otherwise its series are remembered, as they are from a pod's second scrape on.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks import Row, seconds
from scaler.exposition import read_page

METRICS = Path(__file__).parent.parent / "tests/data/metrics"
VLLM = (METRICS / "vllm-metrics-loaded.txt").read_bytes()
TWO_ENGINES = (METRICS / "vllm-metrics-dp2-loaded.txt").read_bytes()
RAY = (METRICS / "ray-2.60-serve-loaded.prom").read_bytes()
RAY_AGENT_BYTES = 712_000
"""What a node with three replicas printed in full; the recorded page holds only Ray Serve's part of it."""


def rows() -> Iterator[Row]:
    yield _row("a vLLM page", VLLM, least=50)
    yield _first_sight("a vLLM page at first sight", VLLM, least=5)
    yield _row("a vLLM page with two engines", TWO_ENGINES, least=35)
    yield _row("a Ray agent's page", RAY + _other_series(RAY_AGENT_BYTES - len(RAY)), least=50)


def _row(what: str, page: bytes, least: int) -> Row:
    ours, theirs = seconds(lambda: read_page(page), lambda: parse(page))
    return _compared(what, page, ours, theirs, least)


def _first_sight(what: str, page: bytes, least: int) -> Row:
    numbers = itertools.count()

    def read_new() -> float:
        new = page.replace(b'model_name="tiny"', b'model_name="tiny-%d"' % next(numbers))
        began = time.perf_counter()
        read_page(new)
        return time.perf_counter() - began

    (theirs,) = seconds(lambda: parse(page), for_s=1.0)
    return _compared(what, page, min(read_new() for _ in range(100)), theirs, least)


def _compared(what: str, page: bytes, ours: float, theirs: float, least: int) -> Row:
    return Row(
        what=f"read {what}, {len(page) / 1000:.0f} KB",
        measured=f"{ours * 1000:.3f} ms",
        beside=f"{theirs * 1000:.2f} ms, prometheus_client",
        ratio=theirs / ours,
        budget=f"≥ {least}×",
        held=theirs / ours >= least,
    )


def parse(page: bytes) -> list[object]:
    return list(text_string_to_metric_families(page.decode()))


def _other_series(size: int) -> bytes:
    """Lines such as fill the rest of a Ray agent's page: long labels, other names."""
    line = (
        'ray_component_rss_mb{Component="ray::ServeReplica",NodeAddress="192.0.2.2",SessionName="session_2026-01-01"'
        ',Version="2.60.0",WorkerId="33fe87cd6cde62f77b7c34592f216bd8a7ab4ae1edd1209d5671ea61",otel_scope_name='
        '"ray._private.telemetry.open_telemetry_metric_recorder",otel_scope_version="",pid="%d"} 312.5\n'
    )
    return "".join(line % pid for pid in range(size // len(line))).encode()
