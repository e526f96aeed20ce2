"""What rivals share: a name, settings, and who moves the count."""

from __future__ import annotations

from typing import Generic, TypeVar

from scaler.backtest.contender import Defaults, Setup, unbraked
from scaler.backtest.hpa import Hpa

S = TypeVar("S")
"""The rival's own settings, a frozen dataclass."""


class Rival(Defaults, Generic[S]):
    """A rule over Prometheus' scrapes that the HPA carries out."""

    def __init__(self, setup: Setup, settings: S, name: str) -> None:
        self.name = name
        self.setup = setup
        self.settings = settings


class Direct(Rival[S]):
    """A rule that reads the pods and moves the count by itself, each `sync_s`."""

    scrape_interval_s = 0.0

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return an HPA that does as it is told."""
        return unbraked(minimum, maximum)
