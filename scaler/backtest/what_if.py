"""What another policy would have wanted while a recording was made, decision by decision.

It is shown what was seen then. So it answers the load as it was under the count that there really was: had its own
count been followed, queues and latencies would have become others, and no recording knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from rich.console import Group
from rich.table import Table

from scaler.policy import Decision, Limits, Observation, PolicySettings, Replicas, StartUp, decide
from scaler.sources.record_format import Tick
from scaler.sources.replay import GAP_S
from scaler.targets.load import LoadMeter

CANNOT_TELL = (
    "A recording has one past. Under another count the queues, the latencies and what clients do would have been "
    "others: each line answers the load as it was, not as it would have become."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tick of the recording, and what the policy would have said."""

    tick: Tick
    decision: Decision
    before: int
    """What it had wanted until then."""


def replay(ticks: Sequence[Tick], settings: PolicySettings, start_up_s: float | None = None) -> list[Wanted]:
    """Let a policy decide at each tick of one target. `start_up_s` is what a start takes; None is unknown."""
    meter, state = LoadMeter(settings.look_back_period_s), None
    start_up = None if start_up_s is None else StartUp(start_up_s, start_up_s)
    wanted = []
    for tick in ticks:
        observation = Observation(
            time=tick.time,
            load=meter.measure(tick.time, tick.pods),
            replicas=Replicas(
                tick.requested,
                tick.current,
                tick.ready,
                tick.starting,
                tick.terminating,
                tick.unschedulable,
                unschedulable_s=tick.unschedulable_s,
                lacks=tick.lacks,
            ),
            limits=Limits(tick.minimum, tick.maximum, 0.0, 0.0),
            start_up=start_up,
            utc=tick.time,
        )
        before = tick.requested if state is None or state.desired is None else state.desired
        state, decision = decide(settings, state, observation)
        wanted.append(Wanted(tick, decision, before))
    return wanted


@dataclass(frozen=True, slots=True)
class Comparison:
    """A recording and a policy's wants, in numbers. Averages are over time, without the recording's pauses."""

    hours: float
    recorded_average: float
    """Of `spec.replicas`."""
    wanted_average: float
    recorded_changes: int
    wanted_changes: int
    differs: float
    """Share of the time in which the two counts differ, 0 to 1."""


def compare(wanted: Sequence[Wanted]) -> Comparison:
    """Sum up. Needs two ticks at least. Raises ValueError."""
    pairs = [
        (before, after.tick.time - before.tick.time)
        for before, after in pairwise(wanted)
        if 0 < after.tick.time - before.tick.time <= GAP_S
    ]
    total = sum(seconds for _, seconds in pairs)
    if not total:
        raise ValueError("the recording holds no two ticks after each other")
    return Comparison(
        hours=total / 3600,
        recorded_average=sum(each.tick.requested * seconds for each, seconds in pairs) / total,
        wanted_average=sum(each.decision.desired * seconds for each, seconds in pairs) / total,
        recorded_changes=sum(after.tick.requested != before.tick.requested for before, after in pairwise(wanted)),
        wanted_changes=sum(each.decision.desired != each.before for each in wanted),
        differs=sum(seconds for each, seconds in pairs if each.decision.desired != each.tick.requested) / total,
    )


def table(name: str, summary: Comparison, changes: Sequence[Wanted]) -> Group:
    """Return what a policy would have wanted, for a terminal."""
    averages = Table(title=f"{name} on {summary.hours:.2f} recorded hours", title_justify="left")
    for title in ("", "replicas on average", "changes"):
        averages.add_column(title, justify="left" if not title else "right")
    averages.add_row("as recorded", f"{summary.recorded_average:.2f}", str(summary.recorded_changes))
    averages.add_row(f"as {name} wanted", f"{summary.wanted_average:.2f}", str(summary.wanted_changes))
    moves = Table(caption=f"The counts differ for {summary.differs:.0%} of the time.", caption_justify="left")
    for title in ("UTC", "wanted", "recorded", "reason"):
        moves.add_column(title, justify="right" if title in {"wanted", "recorded"} else "left")
    for each in changes:
        wanted = f"{each.before} → {each.decision.desired}"
        moves.add_row(_clock(each.tick.time), wanted, str(each.tick.requested), each.decision.reason)
    return Group(averages, moves)


def as_object(name: str, summary: Comparison, changes: Sequence[Wanted]) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "policy": name,
        **asdict(summary),
        "changes": [
            {
                "time": each.tick.time,
                "before": each.before,
                "wanted": each.decision.desired,
                "recorded": each.tick.requested,
                "reason": each.decision.reason,
            }
            for each in changes
        ],
        "cannot_tell": CANNOT_TELL,
    }


def _clock(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%m-%d %H:%M:%S")
