"""A floor by the clock: `Mon-Fri 08:00-20:00 Europe/Berlin = 64; 2026-12-24 18:00-23:00 UTC = 128`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from scaler.policy.parsing import parse_count
from scaler.quoting import quoted

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ENTRY = re.compile(
    r"(?:(?P<date>\d{4}-\d\d-\d\d)|(?P<days>[A-Za-z][A-Za-z,-]*))?\s*"
    r"(?P<start>\d{1,2}:\d\d)-(?P<end>\d{1,2}:\d\d)\s+(?P<zone>[A-Za-z][\w+/-]*)\s*=\s*(?P<floor>\d+)"
)

_MIDNIGHT = "24:00"
"""The end of a day, which is the beginning of the next."""


@dataclass(frozen=True, slots=True)
class Window:
    """One entry: from `start` to `end` in `zone` on the given weekdays (0 is Monday) or date, at least `floor`.

    A window whose end is not after its start reaches past midnight and belongs to the day on which it starts.
    """

    days: frozenset[int]
    day: date | None
    start: time
    end: time
    zone: ZoneInfo
    floor: int
    text: str

    def holds(self, utc: float) -> bool:
        """Tell whether the window is open at Unix time `utc` (seconds)."""
        now = datetime.fromtimestamp(utc, UTC).astimezone(self.zone)
        at, past_midnight = now.time(), self.end <= self.start
        if past_midnight and at < self.end:
            return self._on(now.date() - timedelta(days=1))
        return self._on(now.date()) and self.start <= at and (past_midnight or at < self.end)

    def _on(self, day: date) -> bool:
        return day == self.day if self.day else day.weekday() in self.days


Schedule = tuple[Window, ...]


def floor_at(schedule: Schedule, utc: float) -> Window | None:
    """Return the open window with the highest floor, or None."""
    return max((w for w in schedule if w.holds(utc)), key=lambda w: w.floor, default=None)


def parse_schedule(value: object) -> Schedule:
    """Read a schedule; entries are separated by `;`. Raises ValueError naming the entry."""
    if isinstance(value, tuple):
        return value
    return tuple(_window(entry.strip()) for entry in str(value).split(";") if entry.strip())


def _window(entry: str) -> Window:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise ValueError(f"cannot read {quoted(entry)}: an entry is DAYS HH:MM-HH:MM ZONE = REPLICAS")
    try:
        zone = ZoneInfo(match["zone"])
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a folder of zones, such as `America`
        raise ValueError(f"no time zone {quoted(match['zone'])}: say Europe/Berlin or UTC") from None
    try:
        day = date.fromisoformat(match["date"]) if match["date"] else None
    except ValueError:
        raise ValueError(f"{quoted(entry)}: there is no day {match['date']}") from None
    try:
        start, end = _clock(match["start"]), _clock("00:00" if match["end"] == _MIDNIGHT else match["end"])
    except ValueError:
        raise ValueError(f"{quoted(entry)}: a start is from 00:00 to 23:59, an end from 00:00 to 24:00") from None
    try:
        floor = parse_count(match["floor"])
    except ValueError as error:
        raise ValueError(f"{quoted(entry)}: REPLICAS are {error}") from None
    return Window(_weekdays(match["days"]), day, start, end, zone, floor, entry)


def _clock(text: str) -> time:
    return time.fromisoformat(text.zfill(5))


def _weekdays(text: str | None) -> frozenset[int]:
    days: set[int] = set()
    for part in (text or "Mon-Sun").split(","):
        first, _, last = part.partition("-")
        try:
            start, end = (_DAYS.index(name.title()) for name in (first, last or first))
        except ValueError:
            raise ValueError(f"no weekday {quoted(part)}: say Mon-Fri or Sat,Sun") from None
        days.update((start + i) % 7 for i in range((end - start) % 7 + 1))
    return frozenset(days)
