"""How long a start takes, as Serve's controller sees it: from a higher target to one more replica that runs."""

from __future__ import annotations

from collections import deque

from scaler.policy import StartUp

_REMEMBERED = 32


class Starts:
    """Remembers the last starts of a deployment. Which replica comes first is not told: the first asked for is taken.

    What a replica needs is all in it: a node, its image, the weights, and its first token.
    """

    def __init__(self) -> None:
        self._target: int | None = None
        self._running = 0
        self._asked: deque[float] = deque()
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)

    def see(self, target: int, running: int, time: float) -> None:
        """Take in the counts of this moment (seconds)."""
        if self._target is None:  # those that run already were asked for nobody knows when
            self._target = self._running = running
        for _ in range(target - self._target):
            self._asked.append(time)
        for _ in range(running - self._running):
            if self._asked:
                self._seconds.append(time - self._asked.popleft())
        while len(self._asked) > max(0, target - running):  # taken back before they came
            self._asked.pop()
        self._target, self._running = target, running

    @property
    def start_up(self) -> StartUp | None:
        """Median and p90, None until a start was seen."""
        return StartUp.of(self._seconds)
