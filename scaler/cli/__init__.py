"""The command line. A command is a module and a line here; only the one that is asked for is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from typing import Annotated, Any

import typer

from scaler.cli.help import Command, Group

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: errors are told in words of our own

COMMANDS = {
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

_IN_A_CLUSTER = ("explain", "targets", "lint", "init")
"""The commands of the kubectl plugin."""

_HELP = """A KEDA external scaler for LLM inference.

\b
vllm-scaler demo                        # the whole loop in a minute, no cluster needed
vllm-scaler init deployment/llama       # a ScaledObject for a workload of your cluster
vllm-scaler lint my-scaledobject.yaml   # what is wrong with one
kubectl vllm-scaler targets             # what the scaler in your cluster serves

Every command tells more by --help, and its exit statuses. NO_COLOR=1 turns colours off.
"""
_PLUGIN_HELP = """Ask the vllm-scaler of this cluster, which is found by its Service's label.

\b
kubectl vllm-scaler targets
kubectl vllm-scaler explain llama -n serving
kubectl vllm-scaler init deployment/llama -n serving

The same commands as those of vllm-scaler; --context and --kubeconfig are kubectl's, and stand behind the command.
"""

_COMPLETING = "_VLLM_SCALER_COMPLETE"
"""The variable by which a shell asks for completions, and typer for which shell it is."""

INTERRUPTED = 130
"""What shells say of a program that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments`, those of the process if None."""
    _run("vllm-scaler", arguments, _HELP, tuple(COMMANDS))


def kubectl_plugin(arguments: Sequence[str] | None = None) -> None:
    """Run `kubectl vllm-scaler`: the commands of a cluster's user, and the scaler is found in the cluster."""
    os.environ.pop("VLLM_SCALER_SERVER", None)  # names another one
    found = {"explain": {"port_forward": True}, "targets": {"port_forward": True}}
    _run("kubectl vllm-scaler", arguments, _PLUGIN_HELP, _IN_A_CLUSTER, found)


def kubectl_completion(arguments: Sequence[str] | None = None) -> None:
    """Complete `kubectl vllm-scaler`: kubectl hands over the words so far, and takes lines and a number."""
    words = ["vllm-scaler", *(sys.argv[1:] if arguments is None else arguments)]
    os.environ.update({_COMPLETING: "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)})
    try:
        _run("vllm-scaler", [], _PLUGIN_HELP, _IN_A_CLUSTER)
    finally:
        print(":0")  # file names, where there is nothing else


def _run(
    name: str,
    arguments: Sequence[str] | None,
    text: str,
    commands: Sequence[str],
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _app(given, text, commands, defaults)(given, prog_name=name)
    except KeyboardInterrupt:  # before a command takes it for itself
        raise SystemExit(INTERRUPTED) from None


def _app(
    arguments: Sequence[str],
    text: str,
    commands: Sequence[str],
    defaults: Mapping[str, Mapping[str, Any]] | None,
) -> typer.Typer:
    asked = next((word for word in _to_be_completed() or arguments if not word.startswith("-")), "")
    app = typer.Typer(
        cls=Group,
        help=text,
        no_args_is_help=True,
        add_completion=defaults is None,  # kubectl completes its plugins in a way of its own
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "default_map": defaults},
    )
    app.callback()(_options)
    for name in commands:
        function = _function(name) if name == asked else _not_asked
        app.command(name, cls=Command, short_help=COMMANDS[name])(function)
    return app


def _to_be_completed() -> list[str]:
    """Return the words behind the program's name that a shell wants completed, where one does."""
    if _COMPLETING not in os.environ:
        return []
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()[1:]  # bash, or others


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
