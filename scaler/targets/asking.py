"""When KEDA asked for a target: by a call, or by a stream that stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scaler.targets.clock import Clock


class Asking:
    """What is known of KEDA's questions for one target. Times are on the world's monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self.ever = False
        """Whether there was a question at all."""
        self.streams = 0
        """How many streams stand."""
        self._clock = clock
        self._at = clock.monotonic()

    @property
    def last(self) -> float:
        """When KEDA last asked: now, while a stream stands; the target's beginning, where it never did."""
        return self._clock.monotonic() if self.streams else self._at

    def note(self) -> None:
        """Take note of a question."""
        self.ever, self._at = True, self._clock.monotonic()

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Take note of a stream, which stands while the block runs."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1
            self.note()
