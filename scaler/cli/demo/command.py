"""`vllm-scaler demo`: the whole loop on one machine, no cluster needed."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from inference.simulated import MEMORY_BOUND, PROFILES, Fleet, SloSummary
from inference.simulated.server import FleetServer
from scaler.cli import logs
from scaler.cli.choices import one_of
from scaler.cli.demo import threshold
from scaler.cli.demo.deployment import Deployment
from scaler.cli.demo.keda import Keda, exact_hpa, reference
from scaler.cli.demo.scenario import Scenario
from scaler.cli.demo.tally import Tally
from scaler.cli.demo.view import View
from scaler.cluster.model import ScaledObject, Trigger
from scaler.policy.parsing import parse_duration
from scaler.policy.presets import DEFAULT, PRESETS
from scaler.serving.address import Address
from scaler.serving.host import Host, Ports
from scaler.sources.pods import PodSource
from scaler.targets import Clock, Record, Targets, World

NAMESPACE, NAME = "demo", "llama"
_DRAW_EVERY_S = 0.25


def demo(
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Simulated time to play, such as 12m.")
    ] = "12m",
    speed: Annotated[float, typer.Option(min=0.1, max=60, help="Simulated seconds for each real one.")] = 12.0,
    preset: Annotated[
        str, typer.Option(metavar="NAME", callback=one_of(PRESETS), help=f"The policy: {', '.join(PRESETS)}.")
    ] = DEFAULT,
    start_up_time: Annotated[str, typer.Option(metavar="DURATION", help="From pod created to pod ready.")] = "45s",
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            callback=one_of(PROFILES),
            help=f"What bounds a replica, compute time or KV cache: {', '.join(PROFILES)}.",
        ),
    ] = MEMORY_BOUND.name,
    seed: Annotated[int, typer.Option(help="The same seed plays the same traffic.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The scaler's on 127.0.0.1; 0 is any free one.")] = 0,
    http_port: Annotated[int, typer.Option(min=0, max=65535, help="The live page's; 0 is any free one.")] = 0,
    headless: Annotated[bool, typer.Option("--headless", help="Lines instead of a live view.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Only the summary, as JSON.")] = False,
) -> None:
    """Play a wave and a pulse of traffic on a simulated fleet, scaled by the real server over real gRPC.

    The fleet serves real vLLM metrics pages over HTTP on loopback; a stand-in for KEDA and the HPA asks the scaler
    and moves the replicas. At the end the same traffic is played under a fixed queue threshold, for comparison.

    \b
    vllm-scaler demo
    vllm-scaler demo --preset pulse --start-up-time 2m --speed 20
    vllm-scaler demo --for 5m --json

    Exit status: 0 done, 1 a port is not free, 2 wrong use.
    """
    try:
        scenario = Scenario(
            duration_s=parse_duration(duration),
            start_up_s=parse_duration(start_up_time),
            seed=seed,
            profile=PROFILES[profile],
        )
    except ValueError:
        raise typer.BadParameter("a duration is a number with s, m or h, such as 90s or 12m") from None
    if scenario.duration_s < 60:
        raise typer.BadParameter(f"--for {duration!r} is too short; right is 60s or more")
    logs.configure(logs.LogFormat.AUTO, logs.LogLevel.WARNING)
    out = Console(stderr=as_json)
    ports = Ports(Address("127.0.0.1", port), Address("127.0.0.1", http_port))
    live = not (headless or as_json or not out.is_terminal)
    try:
        ours = asyncio.run(_play(scenario, speed, preset, ports, out, live=live))
    except OSError as error:  # a port that is not free
        typer.echo(error, err=True)
        raise typer.Exit(1) from None
    other = threshold.play(scenario)
    if as_json:
        json.dump({preset: _numbers(ours), "queue threshold": _numbers(other)}, sys.stdout, indent=1)
        print()
    else:
        out.print(_table(scenario, preset, ours, other))


async def _play(scenario: Scenario, speed: float, preset: str, ports: Ports, out: Console, *, live: bool) -> Tally:
    """Run fleet, scaler and KEDA together at `speed`; return what it cost and gave."""
    clock = Clock(speed)
    begin = clock.monotonic()
    fleet = Fleet(scenario.traffic(), profile=scenario.profile, start_up_s=scenario.start_up_s, seed=scenario.seed)
    for _ in range(scenario.minimum):
        fleet.add(0.0, start_up_s=0.0)
    tally, view = Tally(), View(scenario)
    # At a multiple of real time a moment's stall of this machine is long: it must not count as stale.
    metadata = {"policy": preset, "staleness": "60s"}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FleetServer(fleet, lambda: clock.monotonic() - begin))
        source = PodSource()
        stack.push_async_callback(source.close)
        deployment = Deployment(server, scenario, clock)
        targets = Targets(World(deployment, source, clock=clock))
        targets.show([_scaled_object(scenario, metadata)])
        host = await stack.enter_async_context(Host(targets, ports))
        await host.lead()
        ref = reference(NAMESPACE, NAME, metadata)
        keda = Keda(str(host.grpc_address), ref, deployment, exact_hpa(scenario), clock, begin)
        keda_loop = asyncio.create_task(keda.run())
        target = targets.find(NAMESPACE, NAME, metadata)
        await target.first_decision(10.0)
        out.print(f"live page:   http://{host.http_address}/", highlight=False)
        out.print(f"look closer: vllm-scaler explain {NAMESPACE}/{NAME} --server {host.grpc_address}", highlight=False)
        screen = stack.enter_context(Live(console=out, refresh_per_second=4)) if live else None
        requested, said = deployment.requested, ""
        while (now := clock.monotonic() - begin) < scenario.duration_s:
            await asyncio.sleep(_DRAW_EVERY_S if live else clock.real(1.0))
            tally.pods(fleet, fleet.now)
            if deployment.requested != requested:
                requested = deployment.requested
                tally.changes += 1
            record = target.latest
            if record is None:
                continue
            view.note(now, record)
            if screen is not None:
                screen.update(view.draw(now, record))
            elif record.last_change != said:
                said = record.last_change
                out.print(_line(now, record), highlight=False, soft_wrap=True)
        keda_loop.cancel()
        await asyncio.gather(keda_loop, return_exceptions=True)
        if keda.errors:
            out.print(f"[red]{len(keda.errors)} of {keda.syncs} syncs got no answer, the last: {keda.errors[-1]}")
    tally.add(server.outcomes)  # requests end until the last moment, also while the others stop
    tally.finish(fleet)
    return tally


def _scaled_object(scenario: Scenario, metadata: dict[str, str]) -> ScaledObject:
    return ScaledObject(
        namespace=NAMESPACE,
        name=NAME,
        uid="demo",
        generation=1,
        api_version="apps/v1",
        kind="Deployment",
        target=NAME,
        minimum=scenario.minimum,
        maximum=scenario.maximum,
        cooldown_s=300.0,
        polling_s=10.0,
        paused=False,
        triggers=(Trigger(0, "external-push", metadata),),
    )


def _line(now: float, record: Record) -> str:
    load, replicas = record.observation.load, record.observation.replicas
    waiting, running = ("?" if value is None else f"{value:g}" for value in (load.waiting, load.running))
    return (
        f"{now:5.0f}s  wants {record.decision.desired:2} ({replicas.ready} ready, {replicas.starting} starting; "
        f"{waiting} waiting, {running} running): {record.last_change}"
    )


def _numbers(tally: Tally) -> dict[str, Any]:
    summary = tally.summary()
    return {
        "attainment": _attainment(summary),
        "ttft": None
        if summary.ttft is None
        else {"p50": summary.ttft.p50, "p95": summary.ttft.p95, "p99": summary.ttft.p99},
        "requests": {"served": summary.served, "refused": summary.refused, "lost": summary.lost},
        "average_replicas": tally.average_replicas,
        "gpu_hours": tally.gpu_hours,
        "scale_events": tally.changes,
    }


def _attainment(summary: SloSummary) -> dict[str, float] | None:
    attained = summary.attainment
    return None if attained is None else {"ttft": attained.ttft, "tpot": attained.tpot, "both": attained.both}


def _table(scenario: Scenario, preset: str, ours: Tally, other: Tally) -> Table:
    table = Table(
        title=f"The same traffic, {scenario.duration_s / 60:g} minutes, start-up {scenario.start_up_s:g} s",
        caption="SLO: first token within 3 s, then 100 ms a token. A pod costs from its creation until it is gone.",
    )
    table.add_column("")
    table.add_column(f"vllm-scaler ({preset})", justify="right", style="bold")
    table.add_column(f"KEDA, waiting > {threshold.THRESHOLD:g}", justify="right")
    rows = zip(_cells(ours), _cells(other), strict=True)
    for (name, ours_cell), (_, other_cell) in rows:
        table.add_row(name, ours_cell, other_cell)
    return table


def _cells(tally: Tally) -> list[tuple[str, str]]:
    summary = tally.summary()
    attained, ttft = summary.attainment, summary.ttft
    return [
        ("within the SLO", "-" if attained is None else f"{attained.both:.1%}"),
        ("TTFT p50", "-" if ttft is None else f"{ttft.p50:.2f} s"),
        ("TTFT p95", "-" if ttft is None else f"{ttft.p95:.2f} s"),
        ("TTFT p99", "-" if ttft is None else f"{ttft.p99:.2f} s"),
        ("average replicas", f"{tally.average_replicas:.2f}"),
        ("GPU hours", f"{tally.gpu_hours:.2f}"),
        ("changes of the count", str(tally.changes)),
        ("requests lost or refused", str(summary.lost + summary.refused)),
    ]
