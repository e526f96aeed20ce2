"""The way from the command line to a running scaler's insight service, and what to say when there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: errors are told in words of our own

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from scaler.serving.protocol.insight_pb2_grpc import InsightStub

CONNECT_S = 5.0
ANSWER_S = 10.0

NO_SERVER, NO_TARGET, NO_DECISION = 3, 4, 5
EXIT_CODES = "Exit status: 0 done, 2 wrong use, 3 no server answers, 4 no such target, 5 no decision yet, 1 any other."

_PANEL = "Connection"
Server = Annotated[
    str, typer.Option("--server", help="HOST:PORT of the scaler.", envvar="VLLM_SCALER_SERVER", rich_help_panel=_PANEL)
]
Ca = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        help="The server's CA, a PEM file; turns TLS on.",
        envvar="VLLM_SCALER_SERVER_CA_FILE",
        rich_help_panel=_PANEL,
        exists=True,
        dir_okay=False,
    ),
]
Cert = Annotated[
    Path | None,
    typer.Option(
        "--cert-file", help="Client certificate for mutual TLS.", rich_help_panel=_PANEL, exists=True, dir_okay=False
    ),
]
Key = Annotated[
    Path | None,
    typer.Option("--key-file", help="Its key.", rich_help_panel=_PANEL, exists=True, dir_okay=False),
]
Tls = Annotated[
    bool,
    typer.Option("--tls", help="Use TLS with the system's CAs.", rich_help_panel=_PANEL),
]
ServerName = Annotated[
    str | None,
    typer.Option(
        "--server-name",
        help="The name to expect in the server's certificate, when it is reached through a forwarded port.",
        rich_help_panel=_PANEL,
    ),
]
DEFAULT_SERVER = "localhost:9090"


def credentials(tls: bool, ca: Path | None, cert: Path | None, key: Path | None) -> grpc.ChannelCredentials | None:
    """What the options ask for; None is a plain connection."""
    if (cert is None) != (key is None):
        raise typer.BadParameter("--cert-file and --key-file go together")
    if not (tls or ca or cert):
        return None
    root, certificate, private = (file.read_bytes() if file else None for file in (ca, cert, key))
    return grpc.ssl_channel_credentials(root, private, certificate)


@contextmanager
def insight(
    server: str, secret: grpc.ChannelCredentials | None, server_name: str | None = None
) -> Iterator[InsightStub]:
    """A connection to a scaler. What goes wrong ends the program with a line for people and an exit status."""
    options = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    channel = grpc.insecure_channel(server, options) if secret is None else grpc.secure_channel(server, secret, options)
    with channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_S)
        except grpc.FutureTimeoutError:
            raise _fail(_no_server(server, secret is not None), NO_SERVER) from None
        try:
            yield InsightStub(channel)
        except grpc.RpcError as error:
            raise _failure(error, server) from None


def as_dict(message: Message) -> dict[str, Any]:
    """The message for JSON: every field, also those at zero; absent where a value is unknown."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def _no_server(server: str, tls: bool) -> str:
    lines = [
        f"no scaler answers at {server} within {CONNECT_S:g} s" + (" over TLS" if tls else ""),
        "  in a cluster: kubectl -n NAMESPACE port-forward service/vllm-scaler 9090:9090",
        "  elsewhere:    name it with --server HOST:PORT or VLLM_SCALER_SERVER",
    ]
    if not tls:
        lines.append("  if it serves TLS: add --tls or --ca-file, and for mutual TLS --cert-file and --key-file")
    return "\n".join(lines)


def _failure(error: grpc.RpcError, server: str) -> typer.Exit:
    code, text = error.code(), error.details() or ""
    match code:
        case grpc.StatusCode.NOT_FOUND:
            return _fail(text, NO_TARGET)
        case grpc.StatusCode.UNAVAILABLE:
            return _fail(text, NO_DECISION)
        case grpc.StatusCode.UNIMPLEMENTED:
            return _fail(f"{server} answers, but is no vllm-scaler: {text}", NO_SERVER)
        case _:
            return _fail(f"{code.name}: {text}", 1)


def _fail(text: str, status: int) -> typer.Exit:
    typer.echo(text, err=True)
    return typer.Exit(status)
