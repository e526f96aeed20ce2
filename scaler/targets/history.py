"""What a target remembers: its last ticks whole, the last hour's changes and samples packed, and numbers for charts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from scaler.targets.archive import Archive
from scaler.targets.record import Record
from scaler.targets.trail import Points, Trail

_RECENT = 3
_MOMENT_S = 20.0
_MOMENTS = 240
"""Changes of the count, and beside them one tick each `_MOMENT_S`: an hour, when the count changes once a minute."""
_TRAIL = 300
"""Ticks whose numbers are kept all: five minutes at the usual interval."""


class History:
    """Grows by a record at each tick, in bounded memory."""

    def __init__(self) -> None:
        self._recent: deque[Record] = deque(maxlen=_RECENT)
        self._archive = Archive(_MOMENTS)
        self._trail = Trail(_TRAIL)
        self._moment = -math.inf

    def add(self, record: Record) -> None:
        """Remember a record."""
        self._recent.append(record)
        self._trail.add(record)
        if record.decision.desired != record.before or abs(record.time - self._moment) >= _MOMENT_S:
            self._archive.add(record)
            self._moment = record.time

    @property
    def latest(self) -> Record | None:
        """The newest record, None before the first."""
        return self._recent[-1] if self._recent else None

    def __iter__(self) -> Iterator[Record]:
        """Give all that is remembered whole, oldest first, each once."""
        recent = tuple(self._recent)
        if recent:
            yield from self._archive.before(recent[0].time)
            yield from recent

    def at(self, time: float) -> Record | None:
        """Return the record that stood at `time` (Unix seconds): the newest not after it, or else the oldest there is.

        Between two ticks that are remembered whole the count did not change. None before the first tick.
        """
        recent = next((record for record in reversed(self._recent) if record.time <= time), None)
        if recent is not None or not self._recent:
            return recent
        return self._archive.at(time) or self._archive.oldest

    def points(self, after: float = -math.inf) -> Points:
        """Return the numbers of the late ticks, those after `after` (Unix seconds); cheap."""
        return self._trail.after(after)

    def older(self) -> Iterator[Record]:
        """Give what is kept whole from before the late ticks; takes a while, and may be left to another thread."""
        return self._archive.before(self._trail.oldest)
