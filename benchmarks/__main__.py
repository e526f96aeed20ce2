"""`python -m benchmarks [NAME…]`: run benchmarks, print their tables, and write them into RESULTS.md.

Without names those that take seconds run, and make one section together. Those of `benchmarks.cluster` take minutes and
a whole control plane: they run when they are named, and each has a section of its own.
"""

from __future__ import annotations

import os
import platform
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from rich.console import Console
from rich.table import Table

import benchmarks
import benchmarks.cluster
from benchmarks import Row
from tests.cluster import toolchain
from tests.cluster.programs import ProgramError

RESULTS = Path(__file__).with_name("RESULTS.md")
PARTS = "Parts of the scaler"
TITLES = ("what", "measured", "beside it, in the same run", "ratio", "budget", "held")


def main() -> None:
    quick, cluster = _modules(benchmarks), _modules(benchmarks.cluster)
    asked = sys.argv[1:]
    if strangers := set(asked) - {*quick, *cluster}:
        known = f"{', '.join(quick)}, and on a control plane {', '.join(cluster)}"
        sys.exit(f"no benchmark {', '.join(sorted(strangers))}; there are {known}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it cleans up then, as after Ctrl-C
    held = True
    if named := [name for name in quick if not asked or name in asked]:
        rows = [row for name in named for row in _rows(quick[name])]
        held &= _show(rows)
        if not asked:
            _write(PARTS, f"`make bench` measured this on {_when()}: {machine()}.", rows)
    for name in (name for name in cluster if name in asked):
        held &= _on_cluster(name, cluster[name])
    sys.exit(not held)


def _modules(package: ModuleType) -> dict[str, str]:
    """The benchmarks of a package: name → module."""
    names = sorted(m.name for m in iter_modules(package.__path__) if not (m.ispkg or m.name.startswith("_")))
    return {name: f"{package.__name__}.{name}" for name in names}


def _rows(module: str) -> list[Row]:
    with Console().status(f"{module} …"):
        return list(import_module(module).rows())


def _on_cluster(name: str, module: str) -> bool:
    """Whether it held every budget. Its docstring is the section's title and explanation."""
    if reason := toolchain.missing():
        sys.exit(f"{name}: {reason}")
    load = os.getloadavg()[0]
    try:
        rows = _rows(module)
    except (toolchain.ToolchainError, ProgramError, TimeoutError) as error:
        sys.exit(f"{name}: {error}")
    title, _, explanation = (import_module(module).__doc__ or name).partition("\n\n")
    busy = ", so other work took part of the machine" if load > _cores() else ""
    measured = f"`make bench ARGS={name}` measured this on {_when()}: {machine()}; load before: {load:.1f}{busy}."
    _write(title, measured, rows, explanation)
    return _show(rows)


def _show(rows: Sequence[Row]) -> bool:
    table = Table(*TITLES, title=machine(), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*cells(row), style=None if row.held else "bold red")
    Console().print(table)
    return all(row.held for row in rows)


def cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.3g}×"
    held = "" if not row.budget else "yes" if row.held else "no"
    return row.what, row.measured, row.beside, ratio, row.budget, held


def machine() -> str:
    """The machine in words: nothing that names this very one."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (found := re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())):
        model = found[1]
    return f"{model}, {_cores()} cores, {platform.system()}, Python {platform.python_version()}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _when() -> str:
    return f"{date.today():%d %B %Y}"


def _write(title: str, measured: str, rows: Iterable[Row], explanation: str = "") -> None:
    """Put a section into RESULTS.md, in the place of an older one with its title."""
    lines = [TITLES, ("---",) * len(TITLES), *(cells(row) for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    section = "\n\n".join(part.strip() for part in (title, measured, explanation, table) if part)
    head, *sections = RESULTS.read_text().strip().split("\n\n## ")
    titles = [older.partition("\n")[0] for older in sections]
    if title in titles:
        sections[titles.index(title)] = section
    else:
        sections.append(section)
    RESULTS.write_text("\n\n## ".join([head, *sections]) + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("stopped")
