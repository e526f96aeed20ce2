"""Writing what was seen to a file, and reading it back. The format is that of `record_format`."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO

import orjson
import structlog

from scaler.quoting import quoted
from scaler.sources.record_format import HEADER, VERSION, Bounds, Tick, decode, encode

FLUSH_S = 1.0
MAX_BYTES = 2**30

_HEADER_LINE = orjson.dumps(HEADER, option=orjson.OPT_APPEND_NEWLINE)
_HEADER_START = _HEADER_LINE[: _HEADER_LINE.index(b":")]

log = structlog.get_logger(__name__)


class RecordingError(ValueError):
    """The file is no recording, or damaged: the message gives the line and what would be right."""


class Recorder:
    """Appends ticks to `path`; what was recorded is on its way to the disk within a second.

    When the file has grown to `max_bytes` it becomes `path` + `.1` (an older one is replaced) and a new one is
    begun. A disk that fails ends the recording, not the scaler: `failure` then says why.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        """Raises OSError when `path` cannot be written, RecordingError when it holds something else."""
        self.failure: str | None = None
        self._path = path
        self._max_bytes = max_bytes
        self._numbers: dict[Bounds, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        _drop_torn_line(path)
        self._file = self._begin()

    def record(self, tick: Tick) -> None:
        """Note one tick. Needs a running event loop; never raises for a fault of the disk."""
        if self.failure is not None:
            return
        try:
            if self._file.tell() >= self._max_bytes:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._file = self._begin()
            self._write(encode(tick, self._number))
        except OSError as error:
            self._fail(error)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def close(self) -> None:
        """Write what is left and close the file."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            self._file.close()
        except OSError as error:
            self._fail(error)

    def _begin(self) -> BinaryIO:
        file = self._path.open("ab")
        self._numbers = {}
        try:
            file.write(_HEADER_LINE)
            file.flush()
        except OSError:
            with contextlib.suppress(OSError):
                file.close()
            raise
        return file

    def _number(self, bounds: Bounds) -> int:
        if bounds not in self._numbers:
            self._numbers[bounds] = len(self._numbers)
            self._write({"bounds": bounds[:-1]})
        return self._numbers[bounds]

    def _write(self, line: dict[str, object]) -> None:
        self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def _flush(self) -> None:
        self._timer = None
        if self.failure is not None:
            return
        try:
            self._file.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = f"recording to {self._path} ended: {error.strerror or error}"
        log.error(self.failure)
        with contextlib.suppress(OSError):
            self._file.close()


def read_recording(path: Path) -> Generator[Tick]:
    """Iterate over the ticks of a recording in the order of the file.

    A last line that was cut off by a crash is passed over. Raises OSError, and RecordingError for other damage.
    """
    with path.open("rb") as file:
        bounds: list[Bounds] | None = None
        for number, (text, last) in enumerate(_with_last(file), start=1):
            try:
                line = orjson.loads(text)
            except orjson.JSONDecodeError as error:
                if last and bounds is not None:
                    return
                raise RecordingError(f"{path}, line {number}: a JSON object is expected: {error}") from None
            try:
                bounds, tick = _take(line, bounds)
            except ValueError as error:
                raise RecordingError(f"{path}, line {number}: {error}") from None
            if tick is not None:
                yield tick
        if bounds is None:
            raise RecordingError(f"{path} is empty: a recording begins with {_HEADER_LINE.decode().strip()}")


def _take(line: object, bounds: list[Bounds] | None) -> tuple[list[Bounds], Tick | None]:
    """Take in one line; return the bounds known after it, and its tick if it has one."""
    match line:
        case {"recording": "vllm-scaler", "version": version}:
            if version != VERSION:
                raise ValueError(
                    f"version {VERSION} is expected, found {quoted(version)}: use the release that wrote it"
                )
            return [], None
        case _ if bounds is None:
            raise ValueError(f"{_HEADER_LINE.decode().strip()} is expected first: this is no recording")
        case {"bounds": [*finite]} if all(isinstance(bound, int | float) for bound in finite):
            return [*bounds, (*map(float, finite), math.inf)], None
        case dict() if "time" in line:
            return bounds, decode(line, bounds)
        case _:
            raise ValueError('an object with "recording", "bounds" (numbers) or "time" is expected')


def _with_last(lines: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Pair each line with whether it is the last."""
    previous = next(lines, None)
    for line in lines:
        assert previous is not None
        yield previous, False
        previous = line
    if previous is not None:
        yield previous, True


def _drop_torn_line(path: Path) -> None:
    """Cut off what a crash left of a last line, so that the next run's lines stay readable."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        start = file.read(len(_HEADER_START))
        if not _HEADER_START.startswith(start):
            raise RecordingError(f"{path} exists and is no recording: name another file")
        end = file.seek(0, 2)
        while end > 0:
            start_of_block = max(0, end - 2**16)
            file.seek(start_of_block)
            newline = file.read(end - start_of_block).rfind(b"\n")
            if newline >= 0:
                end = start_of_block + newline + 1
                break
            end = start_of_block
        file.truncate(end)
