"""llm-d's default: the router's queue and the running requests, with or without the overshoot guard.

Source: llm-d, `guides/workload-autoscaling/keda-epp` (base, trigger-queue, overshoot-guard). Two triggers, of which
the HPA takes the larger, and the guard's formula over the wanted replicas `demand`:

    demand = max(queued / 1, running / 16)
    guard  = demand if demand <= replicas else max(demand − pending, replicas)

Plain vLLM pods have no flow-control queue in front of them: what waits in engines and at the gateway stands in for
it. As published the guard comes without the running trigger; here it keeps it, since a pool that merely has no queue
would otherwise go to its minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.hpa import Behavior, Hpa, ScalingPolicy
from scaler.backtest.rivals.rival import Rival
from scaler.backtest.rivals.signals import pages, total, waiting

_DOUBLE = (ScalingPolicy("Percent", 100, 15.0),)
_UP, _DOWN = Behavior(0.0, _DOUBLE), Behavior(300.0, _DOUBLE)


@dataclass(frozen=True, slots=True)
class Settings:
    """The guide's."""

    queued: float = 1.0
    """Queued requests for each replica."""
    running: float = 16.0
    """Running requests for each replica."""
    guard: bool = False
    """Do not ask again for what is already starting."""


class LlmDQueue(Rival[Settings]):
    """A replica for each queued request, or for sixteen that run."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "llm-d-queue") -> None:
        super().__init__(setup, settings, name)

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the guide's HPA."""
        return Hpa(minimum, maximum, _UP, _DOWN)

    def want(self, seen: Seen) -> float:
        """Return the demand in replicas, guarded."""
        running = total(page.running for page in pages(seen).values())
        demand = max(waiting(seen) / self.settings.queued, running / self.settings.running)
        replicas = seen.observation.replicas
        if not self.settings.guard or demand <= replicas.current:
            return demand
        pending = max(0, replicas.current - replicas.ready)
        return max(demand - pending, replicas.current)
