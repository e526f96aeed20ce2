"""A whole backtest against the clock: eight replicas under our own policy, which ticks every second."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import Row, seconds
from inference.simulated.traffic import arrivals, constant
from scaler.backtest.deployment import PodLuck
from scaler.backtest.entrants import entrant
from scaler.backtest.plant import Plant

BUDGET = 200
REPLICAS = 8
PLAYED_S = 300.0
RATE = 8.0
"""Requests per second, of 4,000 prompt and 1,000 output tokens: most of what eight replicas do."""


def rows() -> Iterator[Row]:
    """One row, beside the same traffic without anybody who looks."""
    plant = Plant(REPLICAS, REPLICAS, luck=PodLuck(60.0))
    requests = list(arrivals(constant(RATE), PLAYED_S, seed=1))
    ours, fixed = entrant("adaptive").maker, entrant(f"static-{REPLICAS}").maker
    took, alone = seconds(
        lambda: plant.play(requests, PLAYED_S, ours),
        lambda: plant.play(requests, PLAYED_S, fixed),
        for_s=8.0,
    )
    faster = PLAYED_S / took
    yield Row(
        what=f"backtest, {REPLICAS} replicas at {RATE:g} requests/s, a decision every second, one core",
        measured=f"{took * 1000 / PLAYED_S:.2f} ms for each second played",
        beside=f"1000 ms, the clock ({alone * 1000 / PLAYED_S:.2f} ms with a fixed count)",
        ratio=faster,
        budget=f"≥ {BUDGET}×",
        held=faster >= BUDGET,
    )
