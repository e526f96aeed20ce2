"""What a run gave and what it cost, in numbers; and the same over several seeds, with how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.simulated import Outcome
from scaler.backtest.plant import Plant, Run
from scaler.backtest.work import feasible

Numbers = Mapping[str, Any]
"""Nested mappings with numbers as leaves, ready for JSON. None is a number that does not exist."""

Flags = NDArray[np.bool_]

_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t at 97.5 % for 1, 2 … 15 degrees of freedom."""


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """What became of each request. Times count from its arrival, so that waiting at the gateway counts too."""

    arrival_s: NDArray[np.float64]
    ttft_s: NDArray[np.float64]
    """Infinite for one that was never served."""
    tpot_s: NDArray[np.float64]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Requests:
        """Take them from a run's outcomes."""
        return cls(
            np.array([outcome.request.arrival_s for outcome in outcomes], dtype=np.float64),
            np.array([_ttft(outcome) for outcome in outcomes], dtype=np.float64),
            np.array(
                [math.inf if outcome.finished is None else outcome.finished.tpot_s for outcome in outcomes],
                dtype=np.float64,
            ),
        )


def _ttft(outcome: Outcome) -> float:
    return math.inf if outcome.finished is None else outcome.finished.first_token - outcome.request.arrival_s


def met(requests: Requests, ttft_slo_s: float, tpot_slo_s: float) -> tuple[Flags, Flags]:
    """Tell of each request whether it met the objective of its first token, and of its further ones."""
    return requests.ttft_s <= ttft_slo_s, requests.tpot_s <= tpot_slo_s


def numbers(run: Run, plant: Plant) -> Numbers:
    """Return the numbers of one run. TTFT quantiles are of the requests that were served.

    Attainment is of all requests, and again of the feasible ones: no autoscaler can help a request that would miss
    an objective alone on an idle replica.
    """
    requests = Requests.of(run.outcomes)
    slo = plant.ttft_slo_s, plant.tpot_slo_s
    ttft, tpot = met(requests, *slo)
    possible = feasible(plant.profile, [outcome.request for outcome in run.outcomes], *slo)
    served = requests.ttft_s[np.isfinite(requests.ttft_s)]
    gpu_s = math.fsum(gpu_seconds(run))
    total = len(requests.ttft_s)
    return {
        "attainment": _attainment(ttft, tpot),
        "attainment_feasible": _attainment(ttft[possible], tpot[possible]),
        "ttft": {
            f"p{percent}": float(np.quantile(served, percent / 100, method="inverted_cdf")) if len(served) else None
            for percent in (50, 95, 99)
        },
        "average_replicas": gpu_s / run.duration_s,
        "gpu_hours": gpu_s / 3600,
        "node_hours": run.node_hours,
        "scale_events": len(run.changes),
        "wasted_starts": sum(replica.wasted for replica in run.replicas),
        "requests": {"all": total, "feasible": int(possible.sum()), "not_served": total - len(served)},
    }


def _attainment(ttft: Flags, tpot: Flags) -> Numbers:
    """Return shares, 0 to 1; None of no requests."""
    shares = {"ttft": ttft, "tpot": tpot, "both": ttft & tpot}
    return {name: float(flags.mean()) if len(flags) else None for name, flags in shares.items()}


def gpu_seconds(run: Run) -> list[float]:
    """Return how long each pod held its GPU within the run: from being placed until it was gone."""
    return [
        (run.duration_s if replica.gone is None else replica.gone) - max(0.0, replica.scheduled)
        for replica in run.replicas
        if replica.scheduled is not None
    ]


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return math.fsum(values) / len(values)


def half_width(values: Sequence[float]) -> float | None:
    """Return half the width of the mean's 95 % interval (Student's t); None for a single value."""
    freedom = len(values) - 1
    if freedom == 0:
        return None
    t = _T_975[freedom - 1] if freedom <= len(_T_975) else 1.96 + 2.5 / freedom
    return t * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def over_seeds(runs: Sequence[Numbers], combine: Callable[[Sequence[float]], float | None] = mean) -> Numbers:
    """Return each number of several runs combined into one; None where some run does not have it."""
    together: dict[str, Any] = {}
    for key in runs[0]:
        values = [run[key] for run in runs]
        if isinstance(values[0], Mapping):
            together[key] = over_seeds(values, combine)
        else:
            together[key] = None if any(value is None for value in values) else combine(values)
    return together


def pareto(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Tell of each (attainment, cost) whether no other attains at least as much for at most as much, one strictly."""
    return [
        not any(
            other[0] >= point[0] and other[1] <= point[1] and (other[0] > point[0] or other[1] < point[1])
            for other in points
        )
        for point in points
    ]
