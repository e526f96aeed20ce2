"""The way from the command line to a running scaler's insight service, and what to say when there is none."""

from __future__ import annotations

import functools
import inspect
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import grpc
import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from scaler.cli.forward import Kubectl, NoWay, Service
from scaler.serving.protocol.insight_pb2_grpc import InsightStub

CONNECT_S = 5.0
ANSWER_S = 10.0

NO_SERVER, NO_TARGET, NO_DECISION = 3, 4, 5
EXIT_CODES = "Exit status: 0 done, 2 wrong use, 3 no server answers, 4 no such target, 5 no decision yet, 1 any other."
DEFAULT_SERVER = "localhost:9090"


def _option(name: str, text: str, *, file: bool = False, envvar: str | None = None, metavar: str | None = None) -> Any:
    return typer.Option(
        name,
        help=text,
        rich_help_panel="Connection",
        envvar=envvar,
        metavar=metavar,
        exists=file,
        dir_okay=not file,
        show_default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the scaler is to be reached, as the options say."""

    server: Annotated[
        str | None,
        _option(
            "--server",
            f"Where the scaler listens for gRPC. Left out: {DEFAULT_SERVER}, or found by --port-forward.",
            envvar="VLLM_SCALER_SERVER",
            metavar="HOST:PORT",
        ),
    ] = None
    port_forward: Annotated[
        bool,
        _option(
            "--port-forward",
            "Have kubectl find the scaler in the cluster and forward a port to it; `kubectl vllm-scaler` always does.",
        ),
    ] = False
    service: Annotated[
        str | None,
        _option("--service", "The scaler's Service, where its label does not find it.", metavar="NAMESPACE/NAME"),
    ] = None
    context: Annotated[str | None, _option("--context", "The kubeconfig's context.", metavar="NAME")] = None
    kubeconfig: Annotated[
        Path | None, _option("--kubeconfig", "Left out: as kubectl finds it.", metavar="FILE", file=True)
    ] = None
    tls: Annotated[bool, _option("--tls", "Use TLS, and trust the system's CAs.")] = False
    ca_file: Annotated[
        Path | None,
        _option(
            "--ca-file",
            "Use TLS, and trust this CA (PEM).",
            envvar="VLLM_SCALER_SERVER_CA_FILE",
            metavar="FILE",
            file=True,
        ),
    ] = None
    cert_file: Annotated[
        Path | None, _option("--cert-file", "Client certificate for mutual TLS (PEM).", metavar="FILE", file=True)
    ] = None
    key_file: Annotated[Path | None, _option("--key-file", "Its key (PEM).", metavar="FILE", file=True)] = None
    server_name: Annotated[
        str | None,
        _option(
            "--server-name",
            "The name in the server's certificate, if not the host's. Left out with --port-forward: the Service's.",
            metavar="NAME",
        ),
    ] = None

    @property
    def kubectl(self) -> Kubectl | None:
        """Who is to find the scaler; None where it is named, or listens on this machine. Raises typer.BadParameter."""
        if not (self.port_forward or self.service or self.context or self.kubeconfig):
            return None
        if self.server is not None:
            raise typer.BadParameter(
                "--server (or VLLM_SCALER_SERVER) names the scaler, while kubectl vllm-scaler, --port-forward, "
                "--service, --context and --kubeconfig find it in a cluster: leave one or the other out"
            )
        return Kubectl(self.context, self.kubeconfig)


def connecting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Way` beside its own, which come as its argument `way`, and tell how it may end."""

    @functools.wraps(command)
    def with_way(**given: Any) -> None:
        way = Way(**{field.name: given.pop(field.name) for field in fields(Way)})
        command(**given, way=way)

    own, options = (inspect.signature(part, eval_str=True).parameters.values() for part in (command, Way))
    parameters = [*(parameter for parameter in own if parameter.name != "way"), *options]
    kw_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    with_way.__signature__ = inspect.Signature(kw_only)  # type: ignore[attr-defined]  # what typer reads
    with_way.__doc__ = f"{inspect.getdoc(command)}\n\n{EXIT_CODES}"
    with_way.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_way


@contextmanager
def insight(way: Way, *, watching: bool = False) -> Iterator[InsightStub]:
    """A connection to a scaler. What goes wrong ends the program with a line for people and an exit status.

    A scaler that has decided nothing answers UNAVAILABLE, but to a watch: that ends so when the connection is lost.
    """
    secret = _credentials(way)
    with ExitStack() as stack:
        server, name, kubectl = way.server or DEFAULT_SERVER, way.server_name, way.kubectl
        if kubectl is not None:
            server, service = _forwarded(stack, kubectl, way.service)
            name = name or f"{service.name}.{service.namespace}.svc"
        options = [("grpc.ssl_target_name_override", name)] if name else []
        channel = stack.enter_context(
            grpc.insecure_channel(server, options) if secret is None else grpc.secure_channel(server, secret, options)
        )
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_S)
        except grpc.FutureTimeoutError:
            raise _fail(_no_server(server, way, secret is not None), NO_SERVER) from None
        try:
            yield InsightStub(channel)
        except grpc.RpcError as error:
            if watching and error.code() is grpc.StatusCode.UNAVAILABLE:
                raise _fail(f"the connection to the scaler at {server} is lost", NO_SERVER) from None
            raise _failure(error, server) from None


def _forwarded(stack: ExitStack, kubectl: Kubectl, service: str | None) -> tuple[str, Service]:
    try:
        found = Service.parse(service) if service else kubectl.scaler()
        return stack.enter_context(kubectl.forward(found)), found
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--service") from None
    except NoWay as error:
        raise _fail(str(error), NO_SERVER) from None


def current_namespace(way: Way) -> str:
    """Return the namespace of kubectl's context; empty where kubectl is not asked."""
    kubectl = way.kubectl
    try:
        return kubectl.namespace() if kubectl else ""
    except NoWay as error:
        raise _fail(str(error), NO_SERVER) from None


def as_dict(message: Message) -> dict[str, Any]:
    """The message for JSON: every field, also those at zero; absent where a value is unknown."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def _credentials(way: Way) -> grpc.ChannelCredentials | None:
    """What the options ask for; None is a plain connection."""
    if (way.cert_file is None) != (way.key_file is None):
        raise typer.BadParameter("--cert-file and --key-file go together")
    if not (way.tls or way.ca_file or way.cert_file):
        return None
    _refuse_what_is_no_pem(way)
    files = (way.ca_file, way.cert_file, way.key_file)
    root, certificate, private = (file.read_bytes() if file else None for file in files)
    return grpc.ssl_channel_credentials(root, private, certificate)


def _refuse_what_is_no_pem(way: Way) -> None:
    """Raise typer.BadParameter; gRPC would only say that nothing answers."""
    context = ssl.create_default_context()
    if way.ca_file:
        try:
            context.load_verify_locations(way.ca_file)
        except OSError as error:
            text = f"{way.ca_file} is no PEM file of certificates: {error}"
            raise typer.BadParameter(text, param_hint="--ca-file") from None
    if way.cert_file and way.key_file:
        try:
            context.load_cert_chain(way.cert_file, way.key_file, password="")  # no question on the terminal
        except OSError as error:
            text = f"{way.cert_file} and {way.key_file} are no PEM files of a certificate and its key: {error}"
            raise typer.BadParameter(text, param_hint="--cert-file") from None


def _no_server(server: str, way: Way, tls: bool) -> str:
    lines = [f"no scaler answers at {server} within {CONNECT_S:g} s" + (" over TLS" if tls else "")]
    if way.kubectl is None:
        lines += [
            "  in a cluster: add --port-forward, or ask by kubectl vllm-scaler",
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
