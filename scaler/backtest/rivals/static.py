"""A fixed number of replicas: for the peak, as one who knows it would buy them, or any other.

Where the load is flat nothing beats it; whoever scales has to be below its line of attainment against cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals import need
from scaler.backtest.rivals.rival import Direct
from scaler.policy.counting import ceil


@dataclass(frozen=True, slots=True)
class Settings:
    """How many."""

    replicas: int | None = None
    """None: the highest need of the whole run."""
    use: float = 0.9
    """Share of the room within the objectives that the peak is planned with."""
    smoothing_s: float = 20.0
    """Peaks shorter than this may wait a little."""


class Static(Direct[Settings]):
    """Never moves."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "static-peak") -> None:
        super().__init__(setup, settings, name)
        replicas = settings.replicas
        if replicas is None:
            replicas = max(1, ceil(need.replicas(setup, settings.use, settings.smoothing_s).max()))
        self._replicas = float(replicas)

    def want(self, seen: Seen) -> float:  # noqa: ARG002
        """Return the number."""
        return self._replicas
