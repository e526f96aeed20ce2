"""`vllm-scaler backtest`: policies and rivals on the same traffic, in simulated time."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from inference.simulated import MEMORY_BOUND, PROFILES
from scaler.backtest import entrants, report, traces, what_if
from scaler.backtest.deployment import PodLuck
from scaler.backtest.nodes import NodePool
from scaler.backtest.plant import Plant
from scaler.backtest.run import Scene, play
from scaler.backtest.table import as_object, table
from scaler.backtest.traces import TraceError
from scaler.backtest.traces.recorded import ticks_of
from scaler.backtest.troubles import TROUBLES, troubled
from scaler.cli import policies as policy_file
from scaler.cli.choices import one_of
from scaler.policy import SettingsError
from scaler.policy.parsing import parse_duration
from scaler.policy.presets import DEFAULT
from scaler.quoting import quoted
from scaler.sources.recording import RecordingError

_DURATION = "DURATION"
_TRAFFIC, _PLANT, _OUTPUT = "Traffic", "Cluster", "Output"
_RIVAL = "keda-queue"
"""What one's own policy is compared with where nobody says otherwise: the usual KEDA trigger."""
_NODE_TIME = "120s"
_HALVES = {"first": (0.0, 0.5), "second": (0.5, 1.0), "whole": (0.0, 1.0)}


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError:
        raise typer.BadParameter(
            f"{quoted(text)} is wrong; right is a number with s, m or h, such as 90s or 12m"
        ) from None


def backtest(
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE",
            rich_help_panel=_TRAFFIC,
            help=f"Traffic; may be given several times. By name: {', '.join(traces.SYNTHETIC)}. From a file: CSV or "
            "JSON lines, whose format is found, or a recording of serve --record.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[,KEY=VALUE…]",
            help="A preset with metadata beside it, a policy of --policies, a rival with its own settings beside "
            f"it (knative,target=12), or static-N; may be given several times. Left out: {DEFAULT} and {_RIVAL}.",
        ),
    ] = None,
    rivals: Annotated[bool, typer.Option("--rivals", help="All rivals, too.")] = False,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="Fixed counts, too: one for each count within the limits.")
    ] = False,
    policies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own policies, as for serve --policies.")
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of a simulation: what --policy would have wanted while serve --record wrote this file.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="NAMESPACE/NAME", help="Which of a recording's targets.")
    ] = None,
    begin: Annotated[
        str, typer.Option("--from", metavar=_DURATION, rich_help_panel=_TRAFFIC, help="Where in the trace to begin.")
    ] = "0s",
    length: Annotated[
        str | None,
        typer.Option("--for", metavar=_DURATION, rich_help_panel=_TRAFFIC, help="How much of it; left out: the rest."),
    ] = None,
    half: Annotated[
        str,
        typer.Option(
            metavar="|".join(_HALVES),
            callback=one_of(_HALVES),
            rich_help_panel=_TRAFFIC,
            help="Which half of the trace: settings found on one half are to be judged on the other.",
        ),
    ] = "whole",
    scale: Annotated[float, typer.Option(rich_help_panel=_TRAFFIC, help="Traffic as a multiple of the trace's.")] = 1.0,
    seeds: Annotated[int, typer.Option(min=1, max=1000, rich_help_panel=_TRAFFIC, help="How many seeds.")] = 3,
    first_seed: Annotated[int, typer.Option(rich_help_panel=_TRAFFIC, help="The first of them.")] = 1,
    start_up_time: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_DURATION,
            rich_help_panel=_PLANT,
            help="From a pod's having a node to its being ready, the median; several make several tables. "
            "Left out: the trace's, else 60s.",
        ),
    ] = None,
    minimum: Annotated[
        int | None, typer.Option("--min", min=0, rich_help_panel=_PLANT, help="minReplicaCount.")
    ] = None,
    maximum: Annotated[
        int | None, typer.Option("--max", min=1, rich_help_panel=_PLANT, help="maxReplicaCount.")
    ] = None,
    initial: Annotated[
        int | None, typer.Option(min=0, rich_help_panel=_PLANT, help="Replicas at the beginning; left out: --min.")
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            metavar="|".join(PROFILES),
            callback=one_of(PROFILES),
            rich_help_panel=_PLANT,
            help="What bounds a replica: time or KV.",
        ),
    ] = MEMORY_BOUND.name,
    gpus: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=_PLANT, help="Nodes that can be had, one a replica; left out: any number."),
    ] = None,
    warm_nodes: Annotated[
        int | None,
        typer.Option(
            min=0, rich_help_panel=_PLANT, help="With --gpus: nodes that stand at the beginning; left out: 1."
        ),
    ] = None,
    node_time: Annotated[
        str | None,
        typer.Option(
            metavar=_DURATION,
            rich_help_panel=_PLANT,
            help=f"With --gpus: until a new node takes a pod; left out: {_NODE_TIME}.",
        ),
    ] = None,
    crash_share: Annotated[
        float, typer.Option(min=0, max=1, rich_help_panel=_PLANT, help="Share of new pods that never become ready.")
    ] = 0.0,
    slow_share: Annotated[
        float, typer.Option(min=0, max=1, rich_help_panel=_PLANT, help="Share of new pods that take twice as long.")
    ] = 0.0,
    trouble: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME…]",
            rich_help_panel=_PLANT,
            help="What goes wrong: " + "; ".join(f"{name}: {each.text}" for name, each in TROUBLES.items()) + ".",
        ),
    ] = None,
    ttft_slo: Annotated[
        str, typer.Option(metavar=_DURATION, rich_help_panel=_PLANT, help="Promised time to first token.")
    ] = "3s",
    tpot_slo: Annotated[
        str, typer.Option(metavar=_DURATION, rich_help_panel=_PLANT, help="Promised time per output token.")
    ] = "100ms",
    jobs: Annotated[
        int, typer.Option(min=0, rich_help_panel=_OUTPUT, help="Processes; 0: as many as there are cores.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", rich_help_panel=_OUTPUT, help="Results as JSON.")] = False,
    html: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", rich_help_panel=_OUTPUT, help="Write a report with plots, as HTML."),
    ] = None,
) -> None:
    """Play traffic on simulated engines under policies and rivals, and compare what they gave and cost.

    The same code that decides for KEDA, Kubernetes' HPA with its tolerance, windows and limits, KEDA's activation,
    start-up times, nodes, drains: all in simulated time, hundreds of times as fast as the clock. The same seeds give
    the same numbers.

    \b
    vllm-scaler backtest                  # adaptive against a queue threshold
    vllm-scaler backtest --trace wave --policy adaptive,headroom=1 --rivals
    vllm-scaler backtest --trace requests.csv --report report.html
    vllm-scaler backtest --recording seen.jsonl --policy pulse

    Exit status: 0 done, 2 wrong use, or a file that cannot be read or written.
    """
    with _told_in_one_line():
        named = policy_file.load(policies) if policies else {}
        if recording is not None:
            start_up = _duration(start_up_time[0]) if start_up_time else None
            _what_if(recording, target, policy or [DEFAULT], named, start_up, as_json)
            return
        chosen = [traces.find(name, target) for name in trace or ["llm-d-ramp"]]
        low, high = _HALVES[half]
        nodes = _nodes(gpus, warm_nodes, node_time)
        troubles = tuple(name.strip() for name in trouble.split(",")) if trouble else ()
        scenes = []
        for each in chosen:
            cut = each.between(_duration(begin), _duration(begin) + _duration(length) if length else each.duration_s)
            part = cut.between(low * cut.duration_s, high * cut.duration_s).scaled(scale)
            for start_up_s in [_duration(text) for text in start_up_time or []] or [each.start_up_s]:
                plant = Plant(
                    minimum=each.minimum if minimum is None else minimum,
                    maximum=each.maximum if maximum is None else maximum,
                    initial=initial,
                    luck=PodLuck(start_up_s, crash_share=crash_share, slow_share=slow_share),
                    nodes=nodes,
                    profile=PROFILES[profile],
                    ttft_slo_s=_duration(ttft_slo),
                    tpot_slo_s=_duration(tpot_slo),
                )
                scenes.append(Scene(part, troubled(plant, troubles), troubles))
        names = policy or ([] if rivals or frontier else [DEFAULT, _RIVAL])
        names += entrants.rivals() if rivals else []
        if frontier:
            least = max(1, min(scene.plant.minimum for scene in scenes))
            names += [f"static-{n}" for n in range(least, max(scene.plant.maximum for scene in scenes) + 1)]
        entries = [entrants.entrant(name, named) for name in dict.fromkeys(names)]
        count = len(scenes) * len(entries) * seeds
        with _progress(count) as advance:
            results = play(
                scenes,
                entries,
                range(first_seed, first_seed + seeds),
                processes=jobs or os.cpu_count() or 1,
                on_run=advance,
            )
    if as_json:
        json.dump([as_object(result) for result in results], sys.stdout, indent=1)
        print()
    else:
        out = Console()
        for _, group in groupby(results, key=lambda result: id(result.scene)):
            out.print(table(list(group)))
    if html is not None:
        html.write_text(report.html(results), encoding="utf-8")
        print(f"report: {html}", file=sys.stderr)


def _nodes(gpus: int | None, warm_nodes: int | None, node_time: str | None) -> NodePool | None:
    if gpus is not None:
        return NodePool(gpus, 1 if warm_nodes is None else warm_nodes, _duration(node_time or _NODE_TIME))
    for option, value in (("--warm-nodes", warm_nodes), ("--node-time", node_time)):
        if value is not None:
            raise typer.BadParameter(
                f"{option} {value} says nothing without --gpus; right is, for instance, --gpus 8 too"
            )
    return None


def _what_if(
    path: Path,
    target: str | None,
    names: Sequence[str],
    named: entrants.Policies,
    start_up_s: float | None,
    as_json: bool,
) -> None:
    """Say what policies would have wanted on recorded traffic."""
    ticks = ticks_of(path, target)
    out, objects = Console(), []
    for name in names:
        wanted = what_if.replay(ticks, entrants.settings(name, named), start_up_s)
        summary = what_if.compare(wanted)
        changes = [each for each in wanted if each.decision.desired != each.before]
        objects.append(what_if.as_object(name, summary, changes))
        if not as_json:
            out.print(what_if.table(name, summary, changes))
    if as_json:
        json.dump(objects, sys.stdout, indent=1)
        print()
    else:
        out.print(f"{what_if.CANNOT_TELL} --trace {path} plays its arrivals on simulated pods, where the count counts.")


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[], None]]:
    """Draw a bar while runs are played, where somebody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("runs", total=runs)
        yield lambda: progress.advance(task)


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        _refuse("\n".join(error.problems))
    except OSError as error:
        _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (TraceError, RecordingError) as error:
        _refuse(str(error))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _refuse(text: str) -> NoReturn:
    typer.echo(text, err=True)
    raise typer.Exit(2)
