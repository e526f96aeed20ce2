"""How fast the scaler is, always beside something known in the same run: a machine's load falsifies both alike.

A benchmark is a module here with a function `rows() -> Iterable[Row]`. `python -m benchmarks` runs them all, and
`python -m benchmarks read scrape` some.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, in words for people."""

    what: str
    """What was measured, with its size: `read a vLLM page of 50 KB`."""
    measured: str
    """The scaler's own number with its unit: `0.10 ms`."""
    beside: str
    """The same of what it is compared with, and what that is: `5.4 ms, prometheus_client`."""
    ratio: float | None
    """How many times better the scaler is; None where nothing was compared."""
    budget: str
    """What it must hold: `≥ 50×`; empty where the number is only told."""
    held: bool
    """Whether it did."""


BLOCK_S = 0.05


def seconds(*calls: Callable[[], object], for_s: float = 2.0) -> list[float]:
    """Return the least time that each of `calls` took, measured in turns, a block each, for `for_s` seconds in all.

    The least time is the one that other work on the machine disturbed least.
    """
    least = [float("inf")] * len(calls)
    gc.collect()
    end = time.perf_counter() + for_s
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            block_end = time.perf_counter() + BLOCK_S
            while (began := time.perf_counter()) < block_end:
                call()
                least[i] = min(least[i], time.perf_counter() - began)
    return least
