"""`vllm-scaler targets`: everything that a running scaler serves, one line each."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from scaler.cli import client
from scaler.serving.protocol import insight_pb2 as pb

WIDE = 400


@client.connecting
def targets(
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Only those in this namespace.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON for machines.")] = False,
    *,
    way: client.Way,
) -> None:
    """List what a running scaler serves: replicas wanted and there, state, and the last change or what is wrong.

    \b
    vllm-scaler targets                  # asks localhost:9090
    vllm-scaler targets -n serving --json
    kubectl vllm-scaler targets          # asks the one in the cluster
    """
    with client.insight(way) as stub:
        answer = stub.ListTargets(pb.ListTargetsRequest(namespace=namespace), timeout=client.ANSWER_S)
    if as_json:
        print(json.dumps(client.as_dict(answer)["targets"], indent=2))
    elif not answer.targets:
        where = f" in namespace {namespace}" if namespace else ""
        print(f"no targets{where} yet: a target begins when a ScaledObject names this scaler or KEDA first calls")
    else:
        out = Console()
        if not out.is_terminal:
            out.width = WIDE  # nothing is cut off for grep
        out.print(_table(list(answer.targets), answer.time))


def _table(found: list[pb.TargetSummary], now: float) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("TARGET", "POLICY", "STATE"):
        table.add_column(title, no_wrap=True)
    for title in ("WANTED", "READY", "STARTING", "UNKNOWN", "LIMITS"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("LAST CHANGE", no_wrap=True, overflow="ellipsis")
    triggers = Counter((target.namespace, target.name) for target in found)
    for target in found:
        name = f"{target.namespace}/{target.name}"
        trigger = f" ({target.trigger})" if triggers[target.namespace, target.name] > 1 else ""
        table.add_row(
            escape(name + trigger), escape(target.policy), _state(target), *_counts(target), escape(_note(target, now))
        )
    return table


def _state(target: pb.TargetSummary) -> str:
    colour = {
        pb.ACTIVE: "green",
        pb.STALE: "red",
        pb.INVALID: "red",
        pb.WAITING: "yellow",
        pb.CAPACITY_BLOCKED: "yellow",
    }.get(target.state, "dim")
    return f"[{colour}]{pb.State.Name(target.state).lower().replace('_', '-')}[/]"


def _counts(target: pb.TargetSummary) -> tuple[str, ...]:
    if not target.HasField("replicas"):
        return ("–",) * 5
    r = target.replicas
    counts = (str(n) for n in (r.desired, r.ready, r.starting, target.unknown_pods))
    return (*counts, f"{r.minimum}–{r.maximum}")


def _note(target: pb.TargetSummary, now: float) -> str:
    if wrong := [text for text in (target.reason, *target.warnings) if text]:
        return "; ".join(wrong)
    if not target.last_change:
        return "no change yet"
    return f"{max(0.0, now - target.last_change_time):.0f} s ago: {target.last_change}"
