"""How well a fleet kept its promises: a summary of what became of the requests."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from inference.simulated.fleet import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles over the served requests, in seconds."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Attainment:
    """Shares of all requests, 0 to 1; one that was refused or lost attained nothing."""

    ttft: float
    tpot: float
    both: float


@dataclass(frozen=True, slots=True)
class SloSummary:
    """The requests that ended. None stands where there was no request to speak of."""

    served: int
    refused: int
    lost: int
    attainment: Attainment | None
    ttft: Quantiles | None
    tpot: Quantiles | None
    e2e: Quantiles | None


def summarize(outcomes: Collection[Outcome], *, ttft_slo_s: float = 3.0, tpot_slo_s: float = 0.1) -> SloSummary:
    """Sum up outcomes. Requests that have not ended are not among them: let a fleet become idle first."""
    served = [outcome.finished for outcome in outcomes if outcome.finished is not None]
    ttft = [event.ttft_s <= ttft_slo_s for event in served]
    tpot = [event.tpot_s <= tpot_slo_s for event in served]
    both = [first and rest for first, rest in zip(ttft, tpot, strict=True)]
    total = len(outcomes)
    return SloSummary(
        served=len(served),
        refused=sum(outcome.verdict is Verdict.REFUSED for outcome in outcomes),
        lost=sum(outcome.verdict is Verdict.LOST for outcome in outcomes),
        attainment=Attainment(sum(ttft) / total, sum(tpot) / total, sum(both) / total) if total else None,
        ttft=_quantiles([event.ttft_s for event in served]),
        tpot=_quantiles([event.tpot_s for event in served]),
        e2e=_quantiles([event.e2e_s for event in served]),
    )


def _quantiles(values: list[float]) -> Quantiles | None:
    """The smallest values that at least 50, 95 and 99 % of all do not exceed."""
    if not values:
        return None
    values.sort()
    p50, p95, p99 = (values[-(-percent * len(values) // 100) - 1] for percent in (50, 95, 99))
    return Quantiles(p50, p95, p99)
