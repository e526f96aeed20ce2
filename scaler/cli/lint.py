"""`vllm-scaler lint FILE…`: what is wrong with ScaledObjects, before they are applied."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from scaler.cli import policies
from scaler.cli.choices import seconds
from scaler.cli.files import manifest_texts
from scaler.cli.linting import RULES, Finding, Given, Report, Severity, check
from scaler.policy.parsing import SettingsError
from scaler.quoting import quoted

_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.HINT: "bold cyan"}
_INDENT, _WIDTH = "    ", 120


def lint(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Manifests, folders of them, or - for stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON for machines.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail as well.")] = False,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Leave a rule out; may be repeated.")] = None,
    policies_file: Annotated[
        Path | None,
        typer.Option(
            "--policies",
            metavar="FILE",
            help="Your own policies, as for serve --policies.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    scaler_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Triggers with this scalerAddress are checked, and no others."),
    ] = None,
    start_up_time: Annotated[
        str, typer.Option(metavar="DURATION", help="From a replica asked for to a replica that serves.")
    ] = "5m",
) -> None:
    """Check ScaledObjects: metadata, the HPA's behaviour, the way to zero, and the workload where it is given too.

    Reads files only; needs no cluster. Without --scaler-address, a trigger is this scaler's when its address has
    `vllm-scaler` in it or its metadata have one of this scaler's keys.

    \b
    vllm-scaler lint my-scaledobject.yaml
    helm template my-models | vllm-scaler lint --strict -
    kubectl get scaledobjects,deployments -A -o yaml | vllm-scaler lint -

    Exit status: 0 nothing that fails, 1 errors (or warnings with --strict), 2 wrong use.
    """
    given = Given(_policies(policies_file), scaler_address, seconds("--start-up-time", start_up_time))
    report = check(_texts(files), given, _ignored(ignore or []))
    if as_json:
        _print_json(report)
    else:
        _print(report)
    if report.count(Severity.ERROR) or (strict and report.count(Severity.WARNING)):
        raise typer.Exit(1)


def _texts(files: list[str]) -> list[tuple[str, bytes]]:
    return [(name, text) for file in files for name, text in manifest_texts(file)]


def _policies(file: Path | None) -> policies.Policies | None:
    try:
        return policies.load(file) if file else None
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror or error}") from None
    except SettingsError as error:
        raise typer.BadParameter("; ".join(error.problems)) from None


def _ignored(names: list[str]) -> frozenset[str]:
    known = {rule.name for rule in RULES}
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"--ignore: there is no rule {quoted(name)}; there are {', '.join(sorted(known))}")
    return frozenset(names)


def _print(report: Report) -> None:
    console = Console(highlight=False)
    for finding in report.findings:
        console.print(_headline(finding), soft_wrap=True)
        why = textwrap.fill(finding.why, min(console.width, _WIDTH), initial_indent=_INDENT, subsequent_indent=_INDENT)
        console.print(Text(why, style="dim"), soft_wrap=True)
        if finding.right:
            console.print(Text(f"{_INDENT}right: {finding.right}"), soft_wrap=True)
    for skipped in report.skipped:
        console.print(Text(f"{skipped.place}: skipped: {skipped.name} does not name this scaler"), soft_wrap=True)
    counts = ", ".join(_plural(report.count(severity), severity) for severity in Severity)
    console.print(Text(f"{_plural(report.checked, 'ScaledObject')} checked: {counts}"), soft_wrap=True)


def _headline(finding: Finding) -> Text:
    name = f"{finding.name}: " if finding.name else ""
    severity = (finding.severity.value, _COLOURS[finding.severity])
    return Text.assemble(f"{finding.place}: ", severity, f": {name}{finding.what}  ", (f"[{finding.rule}]", "dim"))


def _print_json(report: Report) -> None:
    findings = [
        {**asdict(finding.place), **asdict(finding), "place": str(finding.place)} for finding in report.findings
    ]
    skipped = [{**asdict(skipped.place), "name": skipped.name} for skipped in report.skipped]
    print(json.dumps({"checked": report.checked, "findings": findings, "skipped": skipped}, indent=2))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
