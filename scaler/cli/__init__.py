"""The command line. A command is a module and a line here; only the one that is asked for is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from typing import Annotated, Any

import typer

_COMMANDS = {
    "serve": "Serve KEDA: watch ScaledObjects, read their pods, answer with replica counts.",
    "demo": "Play the whole loop on a simulated fleet; no cluster needed.",
    "backtest": "Compare policies and rivals on the same traffic, in simulated time.",
    "explain": "Tell why a target's replica count is what it is.",
    "targets": "List what a running scaler serves.",
    "read": "Read a metrics page and tell what was understood, what not, and why.",
    "init": "Write a ScaledObject for a workload, each choice with its reason.",
    "lint": "Check ScaledObjects before they are applied.",
}
"""Command → what it does; the function of that name in the module of that name."""

INTERRUPTED = 130
"""What shells say of a program that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments`, those of the process if None."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _app(given)(given, prog_name="vllm-scaler")
    except KeyboardInterrupt:  # before a command takes it for itself
        raise SystemExit(INTERRUPTED) from None


def _app(arguments: Sequence[str]) -> typer.Typer:
    asked = next((word for word in arguments if not word.startswith("-")), "")
    completing = "_VLLM_SCALER_COMPLETE" in os.environ
    app = typer.Typer(
        help="A KEDA external scaler for LLM inference.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name, text in _COMMANDS.items():
        app.command(name, short_help=text)(_function(name) if completing or name == asked else _not_asked)
    return app


def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(import_module(f"scaler.cli.{name}"), name)
    return function


def _not_asked() -> None:
    """Stand for a command in the list of commands."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vllm-scaler {metadata.version('vllm-scaler')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""
    del version
