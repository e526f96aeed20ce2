"""The live view in the terminal: traffic, queue, replicas, and the reason of the last change."""

from __future__ import annotations

from collections import deque

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scaler.cli.demo.scenario import Scenario
from scaler.targets import Record

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 40
"""Characters of a chart: all of it fits in a terminal of 80."""
_SMALL_QUEUE = 10.0
"""A queue shorter than this is drawn as the little that it is."""


class View:
    """Remembers enough of the run to draw it."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._every_s = scenario.duration_s / _WIDTH
        self._rate: deque[float] = deque(maxlen=_WIDTH)
        self._queue: deque[float] = deque(maxlen=_WIDTH)
        self._replicas: deque[float] = deque(maxlen=_WIDTH)
        self._due = 0.0

    def note(self, now: float, record: Record) -> None:
        """Take in a tick at `now` (seconds since the start)."""
        if now < self._due:
            return
        self._due = now + self._every_s
        self._rate.append(self._scenario.rate.at(now))
        self._queue.append(record.observation.load.waiting or 0.0)
        self._replicas.append(float(record.observation.replicas.ready))

    def draw(self, now: float, record: Record) -> RenderableType:
        """Draw the state at `now`."""
        load, replicas = record.observation.load, record.observation.replicas
        lines = Table.grid(padding=(0, 2))
        lines.add_column(style="bold", no_wrap=True, min_width=8)
        lines.add_column(no_wrap=True, width=_WIDTH)
        lines.add_column(no_wrap=True)
        lines.add_row("traffic", Text(_spark(self._rate), "cyan"), f"{self._scenario.rate.at(now):.1f} requests/s")
        waiting, running = ("?" if v is None else f"{v:g}" for v in (load.waiting, load.running))
        lines.add_row(
            "queue", Text(_spark(self._queue, _SMALL_QUEUE), "yellow"), f"{waiting} waiting, {running} running"
        )
        lines.add_row("ready", Text(_spark(self._replicas), "green"), f"{replicas.ready} replicas")
        bar = Text("●" * replicas.ready, "green")
        bar.append("○" * replicas.starting, "yellow")
        bar.append("◌" * replicas.terminating, "dim")
        lines.add_row("replicas", bar, f"{record.decision.desired} wanted, {replicas.starting} starting")
        title, reason = ("last change", record.last_change) if record.last_change else ("now", record.decision.reason)
        why = Text.assemble((f"{title}  ", "bold"), (_ago(record), "dim"), reason)
        lines.add_row("", ProgressBar(total=self._scenario.duration_s, completed=now, width=_WIDTH), "")
        head = f"vllm-scaler demo  {now:4.0f} of {self._scenario.duration_s:.0f} s"
        return Panel(Group(lines, Text(), why), title=head)


def _ago(record: Record) -> str:
    if not record.last_change:
        return ""
    return f"{record.time - record.last_change_time:.0f} s ago: "


def _spark(values: deque[float], least_top: float = 1.0) -> str:
    """One character for each value; the highest of them, or `least_top` if that is more, is the full height."""
    top = max([least_top, *values])
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)
