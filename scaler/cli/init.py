"""`vllm-scaler init KIND/NAME`: a ScaledObject for a workload, with the reason of each choice."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import orjson
import typer

from scaler.cli.choices import seconds
from scaler.cli.drafting import (
    DEFAULT_ADDRESS,
    Kind,
    Refused,
    StartUp,
    Target,
    chosen,
    draft,
    former_of,
    kind_of,
    target_of,
    target_of_former,
)
from scaler.cli.files import manifest_texts
from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifest, read
from scaler.cluster.client import ApiClient
from scaler.cluster.errors import NOT_FOUND, ApiError, ConfigurationError
from scaler.cluster.pods import parse_pod
from scaler.cluster.resources import DEPLOYMENTS, PODS
from scaler.quoting import one_line, quoted
from scaler.targets.start_up import StartUpMeter

NO_CLUSTER = 3
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
ASSUMED_S = 300.0
LONGEST_START_S = 3600.0
"""A pod that became ready later than this after its creation was unready for a while: that was no start."""


def init(
    workload: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND/NAME",
            help="What to scale: a deployment, statefulset, leaderworkerset, rayworkergroup or inferenceservice.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NAME", help="Left out: the context's, or the file's."),
    ] = "",
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE|-", help="Read the workload's manifest; no cluster is asked."),
    ] = None,
    former: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE|-",
            help="The ScaledObject of now: what fits is kept, what changes is told. Alone it names the workload too.",
        ),
    ] = None,
    minimum: Annotated[
        int | None,
        typer.Option(
            "--min",
            min=1,
            max=10**6,
            metavar="NUMBER",
            help="Never fewer replicas. Left out: as it was, else 1.",
            show_default=False,
        ),
    ] = None,
    maximum: Annotated[
        int | None,
        typer.Option(
            "--max",
            min=1,
            max=10**6,
            metavar="NUMBER",
            help="Never more replicas. Left out: as it was, else twice what is there.",
            show_default=False,
        ),
    ] = None,
    start_up_time: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="From a replica asked for to a replica that serves, such as 4m. Left out: measured on live pods.",
        ),
    ] = None,
    scaler_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Where KEDA finds this scaler. Left out: as it was, else {DEFAULT_ADDRESS}.",
            show_default=False,
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The cluster; left out, it is found as kubectl finds it.", exists=True, dir_okay=False
        ),
    ] = None,
    context: Annotated[str | None, typer.Option(metavar="NAME", help="The kubeconfig's context.")] = None,
) -> None:
    """Write a ScaledObject for a workload, each choice with its reason, and a PodDisruptionBudget as a hint.

    From the live cluster, from a manifest, or in the place of a Prometheus trigger:

    \b
    vllm-scaler init deployment/llama -n serving > llama-keda.yaml
    helm template … | vllm-scaler init deployment/llama -f - --max 24
    kubectl get so llama -n serving -o yaml | vllm-scaler init --from -

    Exit status: 0 it is written, 2 wrong use or what cannot be scaled, 3 the cluster cannot be asked or has it not.
    """
    if workload is None and file is None and former is None:
        raise typer.BadParameter(
            "what is to be scaled? Right is KIND/NAME such as deployment/llama, or -f FILE, or --from FILE"
        )
    if file == former == "-":
        raise typer.BadParameter("-f and --from cannot both read stdin: one of them must be a file")
    if scaler_address is not None and not re.fullmatch(r"[^\s/]+:\d{1,5}", scaler_address):
        raise typer.BadParameter(
            f"--scaler-address: {quoted(scaler_address)} is no HOST:PORT; right is, for instance, {DEFAULT_ADDRESS}"
        )
    told = None
    if start_up_time is not None:
        told = StartUp(seconds("--start-up-time", start_up_time), "as said by --start-up-time")
    try:
        kind, name = _reference(workload)
        known = _manifests(former) if former is not None else []
        measured = None
        if file is not None:
            target = target_of(chosen(_manifests(file), kind, name, namespace))
        elif kind is not None:
            target, measured = asyncio.run(_live(kubeconfig, context, kind, name, namespace, measure=told is None))
        else:
            target = target_of_former(former_of(known, None, namespace), namespace)
        before = former_of(known, target, namespace) if former is not None else None
        if not target.namespace:
            target = replace(target, namespace=namespace or (before.text("metadata", "namespace") if before else ""))
        start_up = told or measured or StartUp(ASSUMED_S, "an assumption: --start-up-time says it better")
        written = draft(target, start_up, scaler_address, minimum, maximum, before)
    except Refused as error:
        raise typer.BadParameter(str(error)) from None
    except (ApiError, ConfigurationError) as error:
        typer.echo(error, err=True)
        raise typer.Exit(NO_CLUSTER) from None
    sys.stdout.write(written.text)
    for remark in written.remarks:
        typer.echo(f"kept as it was: {remark.what}; right: {remark.right}", err=True)


def _reference(workload: str | None) -> tuple[Kind | None, str]:
    if workload is None:
        return None, ""
    word, slash, name = workload.partition("/")
    try:
        kind = kind_of(word)
    except Refused as error:
        raise error if slash else Refused(f"{error}; right is KIND/NAME, for instance deployment/llama") from None
    if not _NAME.fullmatch(name):
        raise Refused(f"{quoted(workload)} is no KIND/NAME; right is, for instance, {kind.words[0]}/llama")
    return kind, name


def _manifests(file: str) -> list[Manifest]:
    return [_or_refuse(each) for name, text in manifest_texts(file) for each in read(name, text)]


def _or_refuse(found: Manifest | Flaw) -> Manifest:
    if isinstance(found, Flaw):
        raise Refused(f"{found.place}: {found.what}; right is {found.right}")
    return found


async def _live(
    kubeconfig: Path | None, context: str | None, kind: Kind, name: str, namespace: str, *, measure: bool
) -> tuple[Target, StartUp | None]:
    """Read a workload, its `/scale` and, to `measure` a start-up, its pods."""
    async with await ApiClient.connect(kubeconfig, context) as client:
        namespace = namespace or client.namespace
        try:
            item = await client.get(kind.resource, namespace, name)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            raise ApiError(f"{error}; kubectl get {kind.resource} -A shows what there is") from None
        named = {"apiVersion": f"{kind.group}/{kind.resource.version}", "kind": kind.name, **item}
        [manifest] = map(_or_refuse, read(f"{kind.words[0]}/{name}", orjson.dumps(named)))  # JSON is YAML
        target = target_of(manifest)
        resource = kind.resource if target.kind == kind.name else DEPLOYMENTS  # KServe's
        try:
            scale = await client.get(resource, namespace, target.name, "scale")
        except ApiError as error:
            if error.status != NOT_FOUND or target.kind == kind.name:
                raise
            raise Refused(
                f"{kind.name} {one_line(name)} has no {target}: KServe makes it in its mode Standard (RawDeployment)"
            ) from None
        target = replace(target, replicas=(scale.get("spec") or {}).get("replicas"))
        selector = (scale.get("status") or {}).get("selector")
        if not measure or not selector:
            return target, None
        return target, _measured(await client.list(PODS, namespace, labelSelector=selector))


def _measured(pods: dict[str, list[dict[str, object]]]) -> StartUp | None:
    """Return the start-up that the pods show, None where none of them has become ready."""
    meter, count = StartUpMeter(), 0
    for item in pods["items"]:
        seen = parse_pod(item, None)
        if seen is not None and seen.pod.ready_at is not None:
            took = seen.pod.ready_at - seen.pod.created
            if 0 < took < LONGEST_START_S:
                meter.see([seen.pod])
                count += 1
    if meter.start_up is None:
        return None
    return StartUp(meter.start_up.p90, f"measured on {count} pod{'s' * (count != 1)} (p90)")
