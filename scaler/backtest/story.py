"""One run as a report draws it: what happened over time, small enough to travel between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaler.backtest.plant import MOMENT_S, Change, Moment, Plant, Run
from scaler.backtest.scores import Requests, met

BIN_S = 30.0
"""Attainment over time is told for requests that arrived within so long."""


@dataclass(frozen=True, slots=True)
class Story:
    """A run over time."""

    moments: Sequence[Moment]
    changes: Sequence[Change]
    attainment: Sequence[tuple[float, float | None]]
    """(middle of a bin in seconds, share of its requests that met both objectives); None where none arrived."""
    gpu_hours: Sequence[tuple[float, float]]
    """(time in seconds, GPU-hours until then)"""


def story(run: Run, plant: Plant) -> Story:
    """Boil a run down."""
    requests = Requests.of(run.outcomes)
    ttft, tpot = met(requests, plant.ttft_slo_s, plant.tpot_slo_s)
    both = ttft & tpot
    bins = np.minimum(requests.arrival_s, run.duration_s) // BIN_S
    attainment: list[tuple[float, float | None]] = []
    for number in range(int(run.duration_s // BIN_S) + 1):
        inside = both[bins == number]
        attainment.append(((number + 0.5) * BIN_S, float(inside.mean()) if len(inside) else None))
    hours, cost = 0.0, []
    for moment in run.moments:
        hours += (moment.starting + moment.ready + moment.terminating) * MOMENT_S / 3600
        cost.append((moment.time, hours))
    return Story(run.moments, run.changes, attainment, cost)
