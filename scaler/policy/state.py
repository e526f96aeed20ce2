"""What the policy remembers from one tick to the next. It goes in and comes out of `decide`; nobody else reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scaler.policy.capacity import Capacity
from scaler.policy.forecast import Record
from scaler.policy.rules import Streak


@dataclass(slots=True)
class State:
    """The memory of one target. Times are of `Observation.time`."""

    time: float | None = None
    desired: int | None = None
    smoothed: float | None = None
    demand: float | None = None
    """Last tick's demand, queue included; None when nothing told it."""
    record: Record = field(default_factory=Record)
    """Of the load that is forecast."""
    warm: int = 0
    """For how many replicas there should be room."""
    cold_record: Record = field(default_factory=Record)
    """Of the same load, forecast over the time of a start that waits for a node."""
    warm_window: tuple[tuple[float, int], ...] = ()
    up_window: tuple[tuple[float, int], ...] = ()
    down_window: tuple[tuple[float, int], ...] = ()
    """(time, want): candidates for the least and the highest want of the delay window."""
    direction: int = 0
    direction_since: float = 0.0
    changes: tuple[tuple[float, int], ...] = ()
    """(time, replicas added or removed), for step limits."""
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    """By the text of the rule."""
    ruled: float | None = None
    """The count that the rules moved so far, headroom not included."""
    capacity: Capacity = field(default_factory=Capacity)

    def copy(self) -> State:
        """Return a copy that the next tick may write on."""
        return replace(self)

    def under_new_settings(self) -> State:
        """Return what stays true when the settings change: the count, its recent moves, the learned capacity."""
        return State(desired=self.desired, warm=self.warm, changes=self.changes, capacity=self.capacity)

    def after_gap(self, time: float) -> State:
        """Return what stays true when nothing was seen for long, or the clock jumped to `time`."""
        changes = tuple(change for change in self.changes if change[0] <= time)
        return State(desired=self.desired, warm=self.warm, changes=changes, capacity=self.capacity.after_gap())
