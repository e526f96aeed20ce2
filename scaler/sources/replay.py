"""A recording as a source: at each moment what the recording says of that moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from scaler.exposition.sample import Sample
from scaler.sources.record_format import Tick
from scaler.sources.recording import RecordingError, read_recording
from scaler.sources.source import Endpoint, ReadOptions, Unknown

GAP_S = 60.0
"""What was said longer ago than this says nothing about now."""


class RecordingSource:
    """Plays a recording: its first tick is the moment of construction, and time goes on as `clock` does.

    `clock` gives seconds; one that runs faster plays faster. Pods are found by namespace and name.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises OSError when `path` cannot be read, RecordingError when it is damaged or holds no tick."""
        self._ticks = read_recording(path)
        first = next(self._ticks, None)
        if first is None:
            raise RecordingError(f"{path} holds no tick")
        self._next: Tick | None = first
        self._latest: dict[str, Tick] = {}
        self._end = f"the recording ends at {_clock_time(first.time)}"
        self._clock = clock
        self._offset = first.time - clock()

    async def sample(
        self,
        endpoints: Sequence[Endpoint],
        options: ReadOptions,
        deadline_s: float,  # noqa: ARG002
    ) -> Mapping[str, Sample | Unknown]:
        """Return what each pod said last at this time of the recording; see `Source.sample`."""
        now = self._clock() + self._offset
        self._advance(now)
        said: dict[str, Sample | Unknown] = {}
        for tick in self._latest.values():
            if tick.target.partition("/")[0] == options.namespace and now - tick.time <= GAP_S:
                said.update(tick.pods)
        silence = Unknown(self._end if self._next is None else f"not in the recording at {_clock_time(now)}")
        return {endpoint.pod: said.get(endpoint.pod, silence) for endpoint in endpoints}

    async def close(self) -> None:
        """Let go of the file."""
        self._next = None
        self._ticks.close()

    def _advance(self, now: float) -> None:
        """Take in all ticks up to `now`. Damage ends the recording where it is."""
        while self._next is not None and self._next.time <= now:
            tick = self._next
            self._latest[tick.target] = tick
            try:
                self._next = next(self._ticks, None)
                self._end = f"the recording ends at {_clock_time(tick.time)}"
            except RecordingError as error:
                self._next = None
                self._end = str(error)


def _clock_time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
