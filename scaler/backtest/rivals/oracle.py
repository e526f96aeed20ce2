"""A clairvoyant: knows the whole traffic and what the engine can do, but pays the start-up like everybody.

No one's rule, but a bound. It asks now for the most that will be needed until a pod asked for now is ready: a replica
comes in time for every need, and one that would have to come back within a start-up is not let go.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.need import replicas
from scaler.backtest.rivals.rival import Direct
from scaler.policy.counting import ceil


@dataclass(frozen=True, slots=True)
class Settings:
    """How near the edge it sails."""

    use: float = 0.9
    """Share of the room within the objectives that is planned with: arrivals are not even within seconds."""
    smoothing_s: float = 20.0
    """What comes in bursts shorter than this may wait a little."""
    margin_s: float = 10.0
    """Seconds earlier than the median start-up asks for."""


class Oracle(Direct[Settings]):
    """Every replica just in time."""

    sync_s = 5.0

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "oracle") -> None:
        super().__init__(setup, settings, name)
        self._need = replicas(setup, settings.use, settings.smoothing_s)
        self._ahead_s = setup.start_up_s + settings.margin_s + self.sync_s

    def want(self, seen: Seen) -> float:
        """Return the highest need from now until a pod asked for now is ready."""
        until = int(seen.time + self._ahead_s) + 1
        return float(ceil(self._need[int(seen.time) : until].max(initial=0.0)))
