"""Memory of a scaler with a thousand targets of eight pods each, once every target's history is full."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import Row
from benchmarks._processes import resident_mb
from benchmarks._steady import PODS, TARGETS, server

FILL_S = 60.0
"""The history holds 240 moments; it is filled sevenfold as fast as in life."""
BUDGET_MB = 300


def rows() -> Iterator[Row]:
    alone, ours = _resident_mb(1), _resident_mb(TARGETS)
    yield Row(
        what=f"memory with {TARGETS:,} targets of {PODS} pods",
        measured=f"{ours:.0f} MB",
        beside=f"{alone:.0f} MB, with one target",
        ratio=None,
        budget=f"< {BUDGET_MB} MB",
        held=ours < BUDGET_MB,
    )


def _resident_mb(targets: int) -> float:
    with server(targets, FILL_S, ages=True) as (_, pid):
        return resident_mb(pid)
