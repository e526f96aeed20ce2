"""KEDA's prometheus trigger on the queue, as vLLM's production-stack sets it up.

Source: production-stack, `helm/templates/keda-scaledobject.yaml` and its autoscaling tutorial.

    replicas = sum(vllm:num_requests_waiting) / 5

The HPA keeps Kubernetes' defaults. Requests that run say nothing here, and a series that is missing counts as 0
(`ignoreNullValues` defaults to true): a fleet without a queue goes to its minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.rival import Rival
from scaler.backtest.rivals.signals import pages, total


@dataclass(frozen=True, slots=True)
class Settings:
    """The helm chart's."""

    threshold: float = 5.0
    """Waiting requests for each replica."""


class KedaQueue(Rival[Settings]):
    """One replica for every five requests that wait in the engines."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "keda-queue") -> None:
        super().__init__(setup, settings, name)

    def want(self, seen: Seen) -> float:
        """Return the queue over the threshold."""
        return total(page.waiting for page in pages(seen).values()) / self.settings.threshold
