"""Windows over the recent past, as Prometheus and the other autoscalers keep them."""

from __future__ import annotations

import math
from collections import deque


class TimeWindow:
    """The values of the last `length_s` seconds; the newest is always in it."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._values: deque[tuple[float, float]] = deque()

    def add(self, time: float, value: float) -> None:
        """Add a value at `time` (seconds, rising) and forget what is too old."""
        self._values.append((time, value))
        while len(self._values) > 1 and self._values[0][0] <= time - self._length_s:
            self._values.popleft()

    def mean(self) -> float:
        """Return the mean; of what there is, while the window fills. At least one value must be in it."""
        return math.fsum(value for _, value in self._values) / len(self._values)

    def maximum(self) -> float:
        """Return the highest value. At least one value must be in it."""
        return max(value for _, value in self._values)
