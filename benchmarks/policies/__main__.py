"""`python -m benchmarks.policies`: play the grid, print its tables, write docs/benchmarks.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.policies import page, tables, tuning
from benchmarks.policies.ablation import ablate
from benchmarks.policies.cache import Cache
from benchmarks.policies.contestants import label, maker
from benchmarks.policies.grid import Grid
from benchmarks.policies.playing import Job
from benchmarks.policies.runs import Work, carry_out, plan
from benchmarks.policies.scenes import SCENES, TUNING_SEEDS, VERDICT_SEEDS, Part, Scene
from scaler.backtest.scores import Numbers, half_width, mean
from scaler.policy import SettingsError

Play = Callable[[Sequence[Job]], Work]


def main(
    quick: Annotated[bool, typer.Option("--quick", help="A few minutes: usual start-ups, two seeds.")] = False,
    trace: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"Only these, of {', '.join(SCENES)}. May repeat.")
    ] = None,
    ablation: Annotated[bool, typer.Option("--ablation", help="What each idea of adaptive is worth.")] = False,
    tune: Annotated[bool, typer.Option("--tune", help="Search the rivals' settings, write tuned.json.")] = False,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[,KEY=VALUE…]", help="Compare only these, on what may be tuned on. May repeat."),
    ] = None,
    start_up: Annotated[
        list[float] | None, typer.Option(metavar="SECONDS", help="With --policy: the start-ups. May repeat.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=8, help="With --policy: how many seeds.")] = 3,
    verdict: Annotated[bool, typer.Option("--verdict", help="With --policy: on what is judged on.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="With --quick: write docs/benchmarks.md all the same.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: as many as cores.")] = 0,
) -> None:
    """Play our policies and their rivals against each other; print the tables of docs/benchmarks.md, and write them.

    Each run is kept: what no change has touched is not played again, and after Ctrl-C the next call goes on. With
    --quick or --trace nothing is written.
    """
    scenes = [_scene(name) for name in trace or SCENES]
    play = partial(_play, processes=jobs or os.cpu_count() or 1)
    console, whole = Console(), not trace
    try:
        if policy:
            console.print(_compared(policy, scenes, start_up or [], seeds, "verdict" if verdict else "tuning", play))
        elif tune:
            tuning.write(tuning.tune(play, scenes))
        elif ablation:
            table = ablate(play, scenes)
            console.print(table.rich())
            if whole:
                page.write({"ablation": table.markdown()})
        else:
            grid = Grid(scenes, quick)
            report = tables.report(grid.standings(play(grid.jobs())))
            console.print(*(table.rich() for table in report.all))
            if whole and (write or not quick):
                page.publish(report)
    except SettingsError as error:
        typer.echo("\n".join(error.problems), err=True)
        raise typer.Exit(2) from None


def _scene(name: str) -> Scene:
    if name not in SCENES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(SCENES)}")
    return SCENES[name]


def _compared(
    policies: Sequence[str], scenes: Sequence[Scene], start_ups_s: Sequence[float], seeds: int, part: Part, play: Play
) -> object:
    """Return attainment @ average replicas of each policy, a line for each scene and start-up."""
    for text in policies:
        maker(text)  # a mistake is told before anything is played
    numbers = (VERDICT_SEEDS if part == "verdict" else TUNING_SEEDS)[:seeds]
    places = [(scene, start_up_s) for scene in scenes for start_up_s in start_ups_s or [scene.usual_start_up_s]]
    work = play(
        [
            Job(scene, part, start_up_s, text, seed)
            for scene, start_up_s in places
            for text in policies
            for seed in numbers
        ]
    )
    rows = [
        (
            scene.name,
            f"{start_up_s:g} s",
            *(_cell([work[Job(scene, part, start_up_s, text, seed)] for seed in numbers]) for text in policies),
        )
        for scene, start_up_s in places
    ]
    title = f"attainment of both in %, ± half its 95 % interval, @ average replicas; {part} part, {seeds} seeds"
    return tables.Table(title, ("trace", "start-up", *map(label, policies)), rows).rich()


def _cell(runs: Sequence[Numbers]) -> str:
    shares = [100 * run["attainment"]["both"] for run in runs]
    width = half_width(shares)
    shown = f"{mean(shares):.1f}" if width is None else f"{mean(shares):.1f} ±{width:.1f}"
    return f"{shown} @ {mean([run['average_replicas'] for run in runs]):.2f}"


def _play(wanted: Sequence[Job], *, processes: int) -> Work:
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
            typer.echo(
                f"stopped with {len(work.missing)} runs left; what was played is kept, and the next call goes on",
                err=True,
            )
            raise typer.Exit(130) from None
    return work


if __name__ == "__main__":
    typer.run(main)
