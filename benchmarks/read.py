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
PAGES = {
    "vLLM": "vllm-metrics-loaded.txt",
    "vLLM with two engines": "vllm-metrics-dp2-loaded.txt",
    "Ray agent": "ray-2.60-serve-loaded.prom",
}
RAY_AGENT_BYTES = 712_000
"""What a node with three replicas printed in full; the recorded page holds only Ray Serve's part of it."""


def rows() -> Iterator[Row]:
    for kind, file in PAGES.items():
        page = (METRICS / file).read_bytes()
        if kind == "Ray agent":
            page += _other_series(RAY_AGENT_BYTES - len(page))
        yield _row(kind, page)
    yield _first_sight((METRICS / PAGES["vLLM"]).read_bytes())


def _row(kind: str, page: bytes) -> Row:
    ours, theirs = seconds(lambda: read_page(page), lambda: parse(page))
    return _compared(f"read a page of {kind}, {_size(page)}", ours, theirs, least=50)


def _first_sight(page: bytes) -> Row:
    numbers = itertools.count()

    def read_new() -> float:
        new = page.replace(b'model_name="tiny"', b'model_name="tiny-%d"' % next(numbers))
        began = time.perf_counter()
        read_page(new)
        return time.perf_counter() - began

    (theirs,) = seconds(lambda: parse(page), for_s=1.0)
    ours = min(read_new() for _ in range(100))
    return _compared(f"the same page of vLLM at first sight, {_size(page)}", ours, theirs, least=5)


def _compared(what: str, ours: float, theirs: float, *, least: int) -> Row:
    ratio = theirs / ours
    return Row(
        what=what,
        measured=f"{ours * 1000:.3f} ms",
        beside=f"{theirs * 1000:.2f} ms, prometheus_client",
        ratio=ratio,
        budget=f"≥ {least}×",
        held=ratio >= least,
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


def _size(page: bytes) -> str:
    return f"{len(page) / 1000:.0f} KB"
