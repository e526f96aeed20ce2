"""What can be wrong with a pod, as words: some concern every answer of it, the others only its metrics page."""

from __future__ import annotations

import random
import re
from enum import StrEnum
from functools import cache


class Fault(StrEnum):
    """A fault that a pod has until it is taken away. Its engine goes on working."""

    HUNG = "hung"
    """Takes the connection and the request, and never answers."""
    SLOW = "slow"
    """Answers late."""
    UNAVAILABLE = "unavailable"
    """Answers 503 with a line of JSON."""
    RESET = "reset"
    """Resets the connection instead of answering."""
    GARBAGE = "garbage"
    """The page is bytes that mean nothing."""
    EMPTY = "empty"
    """The page is empty, with status 200."""
    NAN = "nan"
    """The load gauges are NaN."""
    NEGATIVE = "negative"
    """The load gauges are below 0."""
    HUGE = "huge"
    """The load gauges are absurdly high."""
    OVERSIZED = "oversized"
    """A good page behind 22 MB of other families."""
    ENDLESS = "endless"
    """The page goes on for ever."""


OVERSIZED_BYTES = 22_000_000
ENDLESS_CHUNK = b"".join(b'filler_total{row="%d"} 1.0\n' % row for row in range(2000))
"""What an endless page says again and again."""

_LOAD_SAMPLE = re.compile(
    r"^(vllm:(?:num_requests_(?:running|waiting|waiting_by_reason)|kv_cache_usage_perc)(?:\{.*\})?) \S+$",
    re.MULTILINE,
)
_LIES = {Fault.NAN: "NaN", Fault.NEGATIVE: "-7.0", Fault.HUGE: "1e+300"}


def spoil(page: str, fault: Fault | None) -> bytes:
    """The bytes that a pod with this fault sends for a page."""
    if fault is Fault.EMPTY:
        return b""
    if fault is Fault.GARBAGE:
        return random.Random(0).randbytes(len(page))
    if fault in _LIES:
        page = _LOAD_SAMPLE.sub(rf"\1 {_LIES[fault]}", page)
    if fault is Fault.OVERSIZED:
        return _filler() + page.encode()
    return page.encode()


@cache
def _filler() -> bytes:
    """Legal families that nobody asked for, `OVERSIZED_BYTES` long."""
    family = b"# HELP filler_%d A family that nobody asked for.\n# TYPE filler_%d gauge\n"
    rows = ENDLESS_CHUNK.replace(b"filler_total", b"filler_%d")
    parts: list[bytes] = []
    size = 0
    while size < OVERSIZED_BYTES:
        number = b"%d" % len(parts)
        parts.append((family + rows).replace(b"%d", number))
        size += len(parts[-1])
    return b"".join(parts)
