"""The scaler's own policies as contenders: the same `decide` that serves KEDA."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scaler.backtest.contender import Seen, Setup, Want
from scaler.backtest.hpa import DOWN, SYNC_S, UP, Hpa
from scaler.policy import PolicySettings, State, decide


def exact(minimum: int, maximum: int) -> Hpa:
    """Return the HPA as our ScaledObjects ask for it: no tolerance, no window beside the scaler's own delays."""
    return Hpa(
        minimum,
        maximum,
        up=replace(UP, tolerance=0.0),
        down=replace(DOWN, stabilization_s=0.0, tolerance=0.0),
    )


class Ours:
    """`scaler.policy.decide` with its memory: it looks itself, every `metrics_interval_s`, and pushes."""

    scrape_interval_s = 0.0
    sync_s = SYNC_S
    pushes = True

    def __init__(self, setup: Setup, settings: PolicySettings, name: str, given: Collection[str] = ()) -> None:
        """Take a policy; one that works with objectives is told the setup's, but for those of the keys `given`."""
        told = {"ttft_slo_s": setup.ttft_slo_s, "itl_slo_s": setup.tpot_slo_s}
        works_with = {key for key in told if getattr(settings, key) is not None}
        settings = settings.model_copy(update={key: told[key] for key in works_with.difference(given)})
        self.name = name
        self.interval_s: float | None = settings.metrics_interval_s
        self.look_back_s = settings.look_back_period_s
        self.settings = settings
        self._state: State | None = None
        self._last_change = ""

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the HPA of our examples."""
        return exact(minimum, maximum)

    def want(self, seen: Seen) -> Want:
        """Decide one tick."""
        before = seen.observation.replicas.requested
        if self._state is not None and self._state.desired is not None:
            before = self._state.desired
        self._state, decision = decide(self.settings, self._state, seen.observation)
        if decision.desired != before:
            self._last_change = decision.reason
        return Want(
            value=decision.emission.value,
            at_once=decision.desired if decision.at_once else None,
            active=decision.active,
            warm=decision.warm,
            reason=self._last_change,
            decision=decision,
        )
