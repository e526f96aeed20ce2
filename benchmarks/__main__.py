"""`python -m benchmarks [NAME…]`: run the benchmarks, print their table and, after all of them, write RESULTS.md."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable
from datetime import date
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks import Row

RESULTS = Path(__file__).with_name("RESULTS.md")
TITLES = ("what", "measured", "beside it, in the same run", "ratio", "budget", "held")


def main() -> None:
    names = sorted(module.name for module in iter_modules(benchmarks.__path__) if not module.name.startswith("_"))
    asked = sys.argv[1:]
    if strangers := set(asked) - set(names):
        sys.exit(f"no benchmark {', '.join(sorted(strangers))}; there are {', '.join(names)}")
    console = Console()
    rows: list[Row] = []
    for name in asked or names:
        with console.status(f"{name} …"):
            rows += import_module(f"benchmarks.{name}").rows()
    table = Table(*TITLES, title=machine(), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*cells(row), style=None if row.held else "bold red")
    console.print(table)
    if not asked:
        RESULTS.write_text(markdown(rows))
    sys.exit(not all(row.held for row in rows))


def cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.3g}×"
    return row.what, row.measured, row.beside, ratio, row.budget, "yes" if row.held else "no"


def machine() -> str:
    """The machine in words: nothing that names this very one."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (found := re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())):
        model = found[1]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores, {platform.system()}, Python {platform.python_version()}"


def markdown(rows: Iterable[Row]) -> str:
    lines = [TITLES, ("---",) * len(TITLES), *(cells(row) for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# Benchmarks\n\n`make bench` measured this on {date.today():%d %B %Y}: {machine()}.\n\n{table}\n"


if __name__ == "__main__":
    main()
