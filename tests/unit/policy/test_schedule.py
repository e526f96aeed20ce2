"""A floor by the clock, in the zone of those who set it."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from scaler.policy import SettingsError
from scaler.policy.schedule import floor_at, parse_schedule
from tests.unit.policy.world import first, see, settings

WORK = "Mon-Fri 08:00-20:00 Europe/Berlin = 64"
NIGHT = "Fri 22:00-06:00 Europe/Berlin = 8"
EVENT = "2026-12-24 18:00-02:00 UTC = 128"
WRAP = "Sat-Mon 00:00-12:00 UTC = 3"
SINGLE = "Mon,Wed 10:00-11:00 Asia/Kolkata = 5"
DAILY = "9:00-9:30 UTC = 7"
WHOLE = "Sat 00:00-24:00 UTC = 6"
LATE = "Sat 20:00-24:00 UTC = 4"
LOCAL_2 = "02:30-03:30 Europe/Berlin = 9"

# entry, local time in a zone, floor. 2026-11-27 is a Friday.
MOMENTS = [
    (WORK, "2026-11-27 08:00", "Europe/Berlin", 64),
    (WORK, "2026-11-27 07:59:59", "Europe/Berlin", None),
    (WORK, "2026-11-27 19:59:59", "Europe/Berlin", 64),
    (WORK, "2026-11-27 20:00", "Europe/Berlin", None),
    (WORK, "2026-11-28 12:00", "Europe/Berlin", None),
    (WORK, "2026-11-27 07:00", "UTC", 64),  # 08:00 in winter
    (WORK, "2026-07-03 06:00", "UTC", 64),  # 08:00 in summer
    (WORK, "2026-07-03 05:59", "UTC", None),
    (NIGHT, "2026-11-27 22:00", "Europe/Berlin", 8),
    (NIGHT, "2026-11-28 05:59", "Europe/Berlin", 8),  # past midnight belongs to Friday
    (NIGHT, "2026-11-28 06:00", "Europe/Berlin", None),
    (NIGHT, "2026-11-28 22:30", "Europe/Berlin", None),
    (NIGHT, "2026-11-27 05:00", "Europe/Berlin", None),
    (EVENT, "2026-12-24 18:00", "UTC", 128),
    (EVENT, "2026-12-25 01:59", "UTC", 128),
    (EVENT, "2026-12-25 18:00", "UTC", None),
    (EVENT, "2027-12-24 18:00", "UTC", None),
    (WRAP, "2026-11-28 01:00", "UTC", 3),
    (WRAP, "2026-11-30 11:59", "UTC", 3),
    (WRAP, "2026-12-01 01:00", "UTC", None),
    (SINGLE, "2026-11-30 10:30", "Asia/Kolkata", 5),
    (SINGLE, "2026-12-01 10:30", "Asia/Kolkata", None),
    (SINGLE, "2026-12-02 05:00", "UTC", 5),
    (DAILY, "2026-11-28 09:15", "UTC", 7),
    (WHOLE, "2026-11-28 00:00", "UTC", 6),
    (WHOLE, "2026-11-28 23:59:59", "UTC", 6),
    (WHOLE, "2026-11-29 00:00", "UTC", None),
    (LATE, "2026-11-28 23:59:59", "UTC", 4),
    (LATE, "2026-11-29 00:00", "UTC", None),
    # clocks go forward over 02:30 on 2026-03-29 and back over it on 2026-10-25
    (LOCAL_2, "2026-03-29 01:00", "UTC", 9),  # 03:00 summer time
    (LOCAL_2, "2026-03-29 00:45", "UTC", None),  # 01:45 winter time
    (LOCAL_2, "2026-10-25 00:45", "UTC", 9),  # 02:45 summer time
    (LOCAL_2, "2026-10-25 01:45", "UTC", 9),  # 02:45 again, winter time
    (LOCAL_2, "2026-10-25 02:45", "UTC", None),
]


def unix(moment: str, zone: str) -> float:
    return datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(("entry", "moment", "zone", "expected"), MOMENTS)
def test_the_window_is_open_when_its_own_clock_says_so(
    entry: str, moment: str, zone: str, expected: int | None
) -> None:
    window = floor_at(parse_schedule(entry), unix(moment, zone))
    assert (window.floor if window else None) == expected


def test_the_highest_of_several_open_windows_counts() -> None:
    schedule = parse_schedule(f"{WORK}; Fri 09:00-10:00 Europe/Berlin = 80; {NIGHT}")
    window = floor_at(schedule, unix("2026-11-27 09:30", "Europe/Berlin"))
    assert window is not None
    assert window.floor == 80


WRONG = {
    "Mon-Fri 08:00-20:00 = 64": "an entry is DAYS HH:MM-HH:MM ZONE = REPLICAS",
    "Mon-Fri 08:00-20:00 Europe/Berlin": "an entry is DAYS HH:MM-HH:MM ZONE = REPLICAS",
    "Mon-Fri 08:00-20:00 Europe/Berln = 64": "no time zone 'Europe/Berln'",
    "Mon-Fri 08:00-20:00 America = 64": "no time zone 'America'",
    "Mo-Fr 08:00-20:00 UTC = 64": "no weekday 'Mo-Fr': say Mon-Fri",
    "Mon-Fri 08:00-25:00 UTC = 64": "an end from 00:00 to 24:00",
    "Mon-Fri 08:00-24:01 UTC = 64": "an end from 00:00 to 24:00",
    "Mon-Fri 24:00-08:00 UTC = 64": "a start is from 00:00 to 23:59",
    "Mon-Fri 08:60-20:00 UTC = 64": "a start is from 00:00 to 23:59",
    "2026-02-30 08:00-20:00 UTC = 64": "there is no day 2026-02-30",
    "Mon-Fri 08:00-20:00 UTC = many": "an entry is DAYS HH:MM-HH:MM ZONE = REPLICAS",
}


@pytest.mark.parametrize(("entry", "right"), WRONG.items())
def test_a_wrong_entry_is_named_with_what_would_be_right(entry: str, right: str) -> None:
    with pytest.raises(SettingsError) as error:
        settings(minReplicasSchedule=f"{DAILY}; {entry}")
    (problem,) = error.value.problems
    assert problem.startswith("minReplicasSchedule: ")
    assert right in problem


def test_the_floor_raises_the_count_and_keeps_the_target_active() -> None:
    scheduled = settings(targetOngoingRequests=10, minReplicasSchedule=DAILY)
    decision = first(scheduled, see(ready=4, utc=unix("2026-11-28 09:15", "UTC")))
    assert (decision.desired, decision.active) == (7, True)
    assert decision.reason == f"bounds: raised to 7 by schedule '{DAILY}'"
    assert first(scheduled, see(ready=4, utc=unix("2026-11-28 10:15", "UTC"))).desired == 0


def test_the_maximum_cuts_the_floor() -> None:
    scheduled = settings(targetOngoingRequests=10, minReplicasSchedule="00:00-00:00 UTC = 500")
    decision = first(scheduled, see(ready=4, maximum=20))
    assert decision.desired == 20
    assert decision.reason == "bounds: cut to the maximum of 20"
