"""`vllm-scaler explain NS/NAME`: the story of a target's latest decision, or of every one as it is made."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from scaler.cli import client
from scaler.policy.parsing import parse_duration
from scaler.quoting import quoted
from scaler.serving.protocol import insight_pb2 as pb


@client.connecting
def explain(
    target: Annotated[
        str, typer.Argument(help="The ScaledObject; its namespace may stand before it.", metavar="[NAMESPACE/]NAME")
    ],
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="Its namespace. Left out with --port-forward: the context's."
        ),
    ] = "",
    trigger: Annotated[
        str, typer.Option(metavar="ID", help="Which trigger, where the ScaledObject has several for this scaler.")
    ] = "",
    ago: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Tell what stood so long ago, such as 20m; an hour is remembered."),
    ] = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on with every decision until Ctrl-C, half an hour at most.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, with --watch one line for each decision.")] = False,
    *,
    way: client.Way,
) -> None:
    """Tell what the scaler saw, what it decided and why.

    Everything comes from a running scaler, and from what it remembers.

    \b
    vllm-scaler explain serving/llama               # asks localhost:9090
    vllm-scaler explain serving/llama --watch
    vllm-scaler explain serving/llama --ago 20m --server 10.0.0.7:9090
    kubectl vllm-scaler explain llama -n serving    # asks the one in the cluster
    """
    if ago and watch:
        raise typer.BadParameter("--ago and --watch exclude each other")
    seconds_ago = _seconds(ago)
    namespace, name = _named(target, namespace, way)
    ref = pb.TargetRef(namespace=namespace, name=name, trigger=trigger, seconds_ago=seconds_ago)
    with client.insight(way, watching=watch) as stub:
        if not watch:
            _show([stub.Explain(ref, timeout=client.ANSWER_S)], as_json, indent=2)
        elif as_json or not sys.stdout.isatty():
            _show(stub.Watch(ref), as_json)
        else:
            _live(stub.Watch(ref))


def _named(target: str, namespace: str, way: client.Way) -> tuple[str, str]:
    """Return namespace and name of the ScaledObject that is meant."""
    before, slash, name = target.rpartition("/")
    if not name or "/" in before or (slash and not before):
        raise typer.BadParameter(f"{quoted(target)} is no NAMESPACE/NAME, such as serving/llama-70b")
    if before and namespace not in ("", before):
        raise typer.BadParameter(f"{quoted(target)} is in another namespace than --namespace {quoted(namespace)}")
    found = before or namespace or client.current_namespace(way)
    if not found:
        raise typer.BadParameter(f"in which namespace is {quoted(name)}? Right is NAMESPACE/NAME, or -n NAMESPACE")
    return found, name


def _seconds(ago: str) -> float:
    try:
        return parse_duration(ago) if ago else 0.0
    except ValueError as error:
        raise typer.BadParameter(f"{ago!r} is {error}; right is, say, 90s or 20m", param_hint="--ago") from None


def _show(explanations: Iterable[pb.Explanation], as_json: bool, indent: int | None = None) -> None:
    for explanation in explanations:
        text = json.dumps(client.as_dict(explanation), indent=indent) if as_json else explanation.story
        print(text, flush=True)


def _live(explanations: Iterable[pb.Explanation]) -> None:
    with Live(console=Console(), auto_refresh=False, vertical_overflow="ellipsis") as live:
        for explanation in explanations:
            live.update(Text(explanation.story), refresh=True)
