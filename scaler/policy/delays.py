"""Windows over which a want must hold before it is acted on."""

from __future__ import annotations

Window = tuple[tuple[float, int], ...]


def least(window: Window, time: float, want: int, length_s: float) -> Window:
    """Add a want to a sliding window whose first entry is the least want of the last `length_s` seconds."""
    kept = (entry for entry in window if entry[0] > time - length_s and entry[1] < want)
    return (*kept, (time, want))


def highest(window: Window, time: float, want: int, length_s: float) -> Window:
    """Add a want to a sliding window whose first entry is the highest want of the last `length_s` seconds."""
    kept = (entry for entry in window if entry[0] > time - length_s and entry[1] > want)
    return (*kept, (time, want))
