"""What both versions of llm-d's Workload Variant Autoscaler share: a slow loop over each pod's worst minute.

Source: llm-d-workload-variant-autoscaler, `internal/collector`, and llm-d's WVA guide for the HPA. Its loop reads
`max_over_time(…[1m])` of each pod, writes `wva_desired_replicas`, and the HPA takes that unchanged as an AverageValue
of 1, with its tolerance of a tenth. Without metrics it says again what it said last, else the present count.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.hpa import Behavior, Hpa, ScalingPolicy
from scaler.backtest.rivals.rival import Rival, S
from scaler.backtest.rivals.signals import pages
from scaler.backtest.rivals.windows import TimeWindow

_LOOK_BACK_S = 60.0
_BRAKED = Behavior(120.0, (ScalingPolicy("Percent", 100, 15.0),))


@dataclass(frozen=True, slots=True)
class WorstMinute:
    """The highest values of one pod within a minute."""

    kv_usage: float
    """0 to 1."""
    waiting: float


class Wva(Rival[S]):
    """The loop. Versions say in `decide` what they want."""

    def __init__(self, setup: Setup, settings: S, name: str, loop_s: float) -> None:
        super().__init__(setup, settings, name)
        self._loop_s = loop_s
        self._next = 0.0
        self.desired: int | None = None
        """What it said last."""
        self._usage: dict[str, TimeWindow] = {}
        self._waiting: dict[str, TimeWindow] = {}

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the guide's HPA: two minutes of stabilization both ways."""
        return Hpa(minimum, maximum, _BRAKED, _BRAKED)

    def want(self, seen: Seen) -> float:
        """Return the last value that the loop wrote."""
        replicas = self._remember(seen)
        if self.desired is None:
            self.desired = seen.observation.replicas.current
        if replicas and seen.time >= self._next:
            self._next = seen.time + self._loop_s
            self.desired = max(self.setup.minimum, min(self.setup.maximum, self.decide(seen, replicas)))
        return self.desired

    @abstractmethod
    def decide(self, seen: Seen, replicas: list[WorstMinute]) -> int:
        """Return the new count, from one or more pods that could be read."""

    def _remember(self, seen: Seen) -> list[WorstMinute]:
        known = {n: p for n, p in pages(seen).items() if p.kv_cache_usage is not None and p.waiting is not None}
        for name, page in known.items():
            self._usage.setdefault(name, TimeWindow(_LOOK_BACK_S)).add(seen.time, page.kv_cache_usage or 0.0)
            self._waiting.setdefault(name, TimeWindow(_LOOK_BACK_S)).add(seen.time, page.waiting or 0.0)
        return [WorstMinute(self._usage[name].maximum(), self._waiting[name].maximum()) for name in known]
