"""The time that loops live by; a demonstration may let it pass faster."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Clock:
    """Passes `speed` seconds for each second of the machine's monotonic clock, from now on."""

    speed: float = 1.0
    _start: float = field(default_factory=time.monotonic)
    _start_utc: float = field(default_factory=time.time)

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps."""
        return self._start + (time.monotonic() - self._start) * self.speed

    def utc(self) -> float:
        """Return Unix seconds: the machine's own, or where a faster clock would stand."""
        return time.time() if self.speed == 1.0 else self._start_utc + (self.monotonic() - self._start)

    def real(self, seconds: float) -> float:
        """Return how long `seconds` of this clock take on the machine's."""
        return seconds / self.speed

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of this clock."""
        await asyncio.sleep(max(0.0, self.real(seconds)))
