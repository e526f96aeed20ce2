"""The working paper of one decision, which passes from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaler.policy.decision import Step
from scaler.policy.forecast import Forecast
from scaler.policy.observation import Observation
from scaler.policy.schedule import Window
from scaler.policy.settings import PolicySettings
from scaler.policy.signals import Demand
from scaler.policy.state import State


@dataclass(slots=True)
class Draft:
    """The working paper of one decision. `want` passes from step to step; `base` is the last desired count."""

    settings: PolicySettings
    observation: Observation
    state: State
    base: int
    want: float
    floor: Window | None = None
    """The open window of the schedule."""
    demand: dict[str, float] = field(default_factory=dict)
    best: Demand | None = None
    """The signal's answer that counts; None where only rules or nothing spoke."""
    level: float = 0.0
    """The rest of it, as it was before any smoothing."""
    blind: bool = False
    """Nothing says what the load needs: the want is the count as it is, and no demand to shape."""
    ruled: float | None = None
    """What `State.ruled` was before this decision."""
    ignorant: list[str] = field(default_factory=list)
    """Signals that were asked for and could not be known."""
    burst: bool = False
    foreseen: bool = False
    cold: Forecast | None = None
    """What `foresee_cold` found, once it has looked."""
    falls_in_s: float | None = None
    """How soon the delay lets the count fall; None while no fall is wanted, or something else keeps it."""
    claim: int = 0
    """The count that would be wanted without a budget."""
    blocked: str = ""
    """Why more replicas would find no node, empty where they would."""
    steps: list[Step] = field(default_factory=list)

    @property
    def backlog(self) -> float:
        """The part of the want that is there only to work off what waits."""
        return self.best.backlog if self.best else 0.0

    @property
    def pending(self) -> int:
        """Replicas on the way: those that start, and those that were asked for and are not even there yet."""
        replicas = self.observation.replicas
        return max(0, replicas.starting + replicas.unschedulable, self.base - replicas.ready)

    def refuse(self, count: int) -> None:
        """Want `count` instead; the step of the rules that led away from it is taken back, or steps would pile up."""
        if self.state.ruled is not None and self.ruled is not None:
            nearer = min if self.want > count else max
            self.state.ruled = nearer(self.state.ruled, self.ruled)
        self.want = float(count)

    def say(self, rule: str, text: str) -> None:
        """Write down what the rule did."""
        self.steps.append(Step(rule, self.want, text))
