"""Mooncake's traces: one JSON object a line, with the blocks of each prompt's prefix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from scaler.backtest.traces.lines import LONGEST_S, TraceError, whole_number
from scaler.backtest.traces.table import listed
from scaler.backtest.traces.trace import Draw

BLOCK_TOKENS = 512
"""Prompt tokens that one of `hash_ids` stands for."""
CACHED_FOR_S = 300.0
"""A prefix that was used within this time is taken to be in the cache, as with a store that all replicas share."""


def read(source: str, lines: Iterator[tuple[int, str]]) -> tuple[Draw, float]:
    """Read the lines into (draw, duration in seconds).

    Its clock goes in steps of three seconds: the requests of a step are spread over it.
    """
    times: list[float] = []
    sizes: list[tuple[int, int]] = []
    blocks: list[list[int]] = []
    for number, line in lines:
        row = _object(source, number, line)
        time = whole_number(source, number, "timestamp", row.get("timestamp"), least=0, most=round(LONGEST_S * 1000))
        times.append(time / 1000)
        prompt = whole_number(source, number, "input_length", row.get("input_length"), least=1)
        output = whole_number(source, number, "output_length", row.get("output_length"), least=0)
        hashes = row.get("hash_ids", [])
        if not isinstance(hashes, list) or not all(isinstance(each, int) for each in hashes):
            raise TraceError(
                f"{source}, line {number}: hash_ids is {hashes!r:.60}; a list of whole numbers is expected"
            )
        sizes.append((prompt, max(1, output)))
        blocks.append(hashes)
    used: dict[int, float] = {}
    tokens = [(0, 0, 0)] * len(times)
    for i in sorted(range(len(times)), key=times.__getitem__):
        prompt, output = sizes[i]
        tokens[i] = (prompt, output, min(prompt, BLOCK_TOKENS * _known(blocks[i], used, times[i])))
        used.update(dict.fromkeys(blocks[i], times[i]))
    return listed(source, times, tokens, spread=True)


def _known(blocks: list[int], used: dict[int, float], now: float) -> int:
    """How many blocks at the head of a prompt were used lately."""
    for count, block in enumerate(blocks):
        if block not in used or now - used[block] > CACHED_FOR_S:
            return count
    return len(blocks)


def _object(source: str, number: int, line: str) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise TraceError(f"{source}, line {number}: a JSON object is expected: {error}") from None
    if not isinstance(row, dict):
        raise TraceError(f"{source}, line {number}: a JSON object is expected, found {line!r:.60}")
    return row
