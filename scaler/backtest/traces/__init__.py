"""Traces: traffic from a file, whose format is found from its first line, or made up and known by name."""

from __future__ import annotations

import difflib
from itertools import chain
from pathlib import Path

from scaler.backtest.traces import mooncake, recorded, table
from scaler.backtest.traces.lines import TraceError, read_lines
from scaler.backtest.traces.synthetic import SYNTHETIC
from scaler.backtest.traces.trace import Trace
from scaler.sources.recording import RecordingError

__all__ = ["SYNTHETIC", "Trace", "TraceError", "find", "read"]


def find(name: str, target: str | None = None) -> Trace:
    """Return the trace of this name, or that of the file at this path; `target` chooses one of a recording's.

    Raises TraceError, with what would be right.
    """
    if name in SYNTHETIC:
        return SYNTHETIC[name]
    path = Path(name)
    if not path.exists():
        near = difflib.get_close_matches(name, SYNTHETIC, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(SYNTHETIC)}"
        raise TraceError(f"{name}: no such file, and no trace of that name; {hint}")
    return read(path, target)


def read(path: Path, target: str | None = None) -> Trace:
    """Read a trace file. Raises TraceError, which names the line and what would be right."""
    try:
        lines = read_lines(path)
        first = next(lines, None)
        if first is None:
            raise TraceError(f"{path} is empty; its first line should be {_known()}")
        number, header = first
        if '"recording"' in header:
            return recorded.read(path, target)
        if header.startswith("{"):
            draw, duration = mooncake.read(str(path), chain([first], lines))
        elif (reader := table.reader(header)) is not None:
            draw, duration = reader(str(path), lines)
        else:
            raise TraceError(f"{path}, line {number}: {header!r:.80} is no known beginning; right is {_known()}")
    except (OSError, RecordingError) as error:
        raise TraceError(str(error)) from None
    return Trace(path.name.removesuffix(".gz"), duration, draw)


def _known() -> str:
    tables = ", ".join(repr(header) for header in table.HEADERS)
    return f"one of {tables}, a JSON object with timestamp, input_length and output_length, or a recording's"
