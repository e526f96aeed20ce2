"""Processes beside the benchmark: how one is run, and what it takes, as the kernel counts it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@contextmanager
def beside(run: Callable[..., None], *arguments: object) -> Iterator[tuple[Any, int]]:
    """Run `run(*arguments, connection)` in a fresh process: what it sends first, and its process id.

    It is sent a word when it may end, and killed if it does not get that far.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run, args=(*arguments, there), daemon=True)
    process.start()
    try:
        yield here.recv(), process.pid or 0
        here.send("stop")
        process.join()
    finally:
        process.kill()


def cpu_s(pid: int) -> float:
    """Processor time that a process has used since its start, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6
