"""Another writer of the same count is noticed and given way to, not fought."""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 1800.0
"""How long nothing is written after somebody else has.

The first time it is put right at once: whoever applies a RayCluster's manifest sets all of its worker groups, counts
included, for they are one list. From the second time on the pauses begin, each twice as long as the one before, so
that a program that insists is left alone.
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of one object's count. Times are on a clock that does not jump."""

    generation: int
    """Of the object, when it was last written or looked at."""
    count: int
    """What stood there then."""
    times: int = 0
    """How often in a row somebody else has changed it."""
    until: float = float("-inf")
    """Until when nothing is to be written."""

    @property
    def pause_s(self) -> float:
        """How long nothing is written after the last of those changes."""
        return 0.0 if self.times < 2 else min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self.times - 2))


def written(before: Memory | None, generation: int, count: int) -> Memory:
    """Remember what we have written."""
    if before is None:
        return Memory(generation, count)
    return replace(before, generation=generation, count=count)


def looked(before: Memory | None, generation: int, count: int, wanted: int, now: float) -> Memory:
    """Remember what was seen: a count that we have not written, and that is not the wanted one, is somebody else's."""
    if before is None:
        return Memory(generation, count)
    if count in (before.count, wanted):
        calm = now > before.until + LONGEST_PAUSE_S
        return Memory(generation, count, 0 if calm else before.times, before.until)
    contested = Memory(generation, count, before.times + 1)
    return replace(contested, until=now + contested.pause_s)
