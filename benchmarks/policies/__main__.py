"""`python -m benchmarks.policies`: play the grid, print its tables, write docs/benchmarks.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.policies import tuning
from benchmarks.policies.cache import Cache
from benchmarks.policies.contestants import label, maker
from benchmarks.policies.playing import Job
from benchmarks.policies.runs import Work, carry_out, jobs, plan
from benchmarks.policies.scenes import SCENES, TUNING_SEEDS, VERDICT_SEEDS, Part, Scene
from scaler.backtest.scores import Numbers, half_width, mean
from scaler.policy import SettingsError

Several = list[str] | None


def main(
    policy: Annotated[Several, typer.Option(help="Only these, on tuning seeds: one line a scene. May repeat.")] = None,
    trace: Annotated[Several, typer.Option(help=f"Only these scenes, of {', '.join(SCENES)}. May repeat.")] = None,
    start_up: Annotated[list[float] | None, typer.Option(help="Only these start-ups, in seconds. May repeat.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=8, help="With --policy: how many seeds.")] = 3,
    verdict: Annotated[bool, typer.Option("--verdict", help="With --policy: on the seeds that judge.")] = False,
    tune: Annotated[bool, typer.Option("--tune", help="Search the rivals' settings, write tuned.json.")] = False,
    jobs_: Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0: as many as cores.")] = 0,
) -> None:
    """Play policies and rivals against each other, and compare them."""
    scenes = [_scene(name) for name in trace or SCENES]
    processes = jobs_ or os.cpu_count() or 1
    if tune:
        tuning.write(tuning.tune(lambda wanted: played(wanted, processes), scenes))
        return
    try:
        for name in policy or []:
            maker(name)
    except SettingsError as error:
        typer.echo("\n".join(error.problems), err=True)
        raise typer.Exit(2) from None
    _compare(policy or ["adaptive"], scenes, start_up or [], seeds, verdict, processes)


def _scene(name: str) -> Scene:
    if name not in SCENES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(SCENES)}")
    return SCENES[name]


def _compare(
    policies: Sequence[str],
    scenes: Sequence[Scene],
    start_ups_s: Sequence[float],
    seeds: int,
    verdict: bool,
    processes: int,
) -> None:
    """Print attainment @ average replicas of each policy, a line for each scene and start-up."""
    part: Part = "verdict" if verdict else "tuning"
    numbers = VERDICT_SEEDS if verdict else TUNING_SEEDS
    wanted = [
        job
        for scene in scenes
        for job in jobs([scene], part, policies, numbers[:seeds], start_ups_s or [scene.usual_start_up_s])
    ]
    work = played(wanted, processes)
    table = Table(box=SIMPLE_HEAD, caption=f"attainment of both objectives in %, ± half its 95 % interval, @ average "
                  f"replicas; {part} part, {seeds} seeds", caption_justify="left")  # fmt: skip
    for column in ("scene", "start-up", *map(label, policies)):
        table.add_column(column, justify="left" if column == "scene" else "right")
    rows = {(job.scene.name, job.start_up_s): job for job in wanted}
    for (name, start_up_s), first in rows.items():
        cells = [
            _cell([work[Job(first.scene, part, start_up_s, each, seed)] for seed in numbers[:seeds]])
            for each in policies
        ]
        table.add_row(name, f"{start_up_s:g} s", *cells)
    Console().print(table)


def _cell(runs: Sequence[Numbers]) -> str:
    shares = [100 * run["attainment"]["both"] for run in runs]
    width = half_width(shares)
    shown = f"{mean(shares):.1f}" if width is None else f"{mean(shares):.1f} ±{width:.1f}"
    return f"{shown} @ {mean([run['average_replicas'] for run in runs]):.2f}"


def played(wanted: Sequence[Job], processes: int) -> Work:
    """Play what is not known yet, under a progress bar. Ends the program after Ctrl-C, with what is done kept."""
    store = Cache()
    work = plan(wanted, store)
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("runs", total=len(work.missing))
        try:
            carry_out(work, store, processes=processes, on_run=lambda: progress.advance(task))
        except KeyboardInterrupt:
            progress.stop()
            left = len(work.missing)
            typer.echo(f"stopped with {left} runs left; what was played is kept, and the next call goes on", err=True)
            raise typer.Exit(130) from None
    return work


if __name__ == "__main__":
    typer.run(main)
