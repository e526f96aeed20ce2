"""`vllm-scaler serve`: every option of the server, and the one place where its parts are put together."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import structlog
import typer
import uvloop

from scaler.cli import budgets, logs, policies
from scaler.cli.logs import LogFormat, LogLevel
from scaler.cluster.client import ApiClient
from scaler.cluster.discovery import KubernetesDiscovery
from scaler.cluster.endpoints import EndpointsError, FixedEndpoints, Network, parse_networks
from scaler.cluster.errors import ConfigurationError
from scaler.cluster.events import EventRecorder
from scaler.cluster.lease import Election
from scaler.cluster.model import Discovery, DiscoveryError, ScaledObject, Workload
from scaler.cluster.pod_marks import PodMarker
from scaler.cluster.ray.bridge import RayBridge
from scaler.cluster.scaled_objects import OwnAddresses
from scaler.cluster.warm.keeper import WarmKeeper
from scaler.cluster.warm.objects import Placeholders
from scaler.cluster.warm.ways import Way
from scaler.serving.address import Address
from scaler.serving.announcements import Announcer
from scaler.serving.direct import DirectDelivery
from scaler.serving.host import STANDBY, Host, Ports, calm_collector
from scaler.serving.pod_loads import pod_loads
from scaler.serving.removal import Removal
from scaler.serving.silence import Silence
from scaler.serving.tls import TlsError, TlsFiles
from scaler.serving.warmth import SHADOW, WITHOUT, Warmth, warm_wishes
from scaler.sources.access import Access, tls_context
from scaler.sources.gpu import GpuUtilization
from scaler.sources.pods import PodSource
from scaler.sources.prometheus import PrometheusSource
from scaler.sources.record_format import Tick
from scaler.sources.recording import Recorder, RecordingError
from scaler.targets import (
    DEFAULT_MAXIMUM,
    Budget,
    Budgets,
    Observer,
    Record,
    SettingsError,
    Target,
    Targets,
    TriggerSettings,
    World,
)
from scaler.targets.target import Outcomes

log = structlog.get_logger(__name__)

T = TypeVar("T")

SIGHT_S = 3.0
"""How long the first look at the cluster may take before it is worth a warning."""
REMEDY = (
    "see that this is the right cluster (--kubeconfig, KUBECONFIG), that its API server is up, and that no firewall or "
    "NetworkPolicy keeps this process from it; until it answers, this scaler is not ready"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a server is to be made of: the options, checked."""

    ports: Ports
    kubeconfig: Path | None
    namespaces: tuple[str, ...]
    addresses: tuple[str, ...]
    """By which triggers name this scaler; empty for the Service `vllm-scaler` of its own namespace."""
    lease: str | None
    """None: there is but one replica, which always leads."""
    allowed: tuple[Network, ...]
    """Where endpoints named in metadata may lie; empty forbids them."""
    access: Access
    prometheus: str | None
    dcgm_url: str | None
    policies: policies.Policies
    budgets: tuple[Budget, ...]
    record: Path | None
    shadow: bool
    ray: bool
    ray_token_file: Path | None
    warm: Way | None
    """None: no room is made, whatever triggers ask for."""
    placeholders: Placeholders
    idle_first: bool
    protect_busy: bool


def _option(panel: str, name: str, text: str, *, file: bool = False, metavar: str | None = None) -> Any:
    """An option in its group of the help, with its environment variable."""
    return typer.Option(
        name,
        help=text,
        show_envvar=False,  # the help tells the rule, since a narrow terminal cuts such names off
        envvar=f"VLLM_SCALER_{name.removeprefix('--').replace('-', '_').upper()}",
        rich_help_panel=panel,
        metavar=metavar,
        exists=file,
        dir_okay=not file,
    )


def serve(
    listen: Annotated[str, _option("Listening", "--listen", "For gRPC.", metavar="HOST:PORT")] = "[::]:9090",
    http_listen: Annotated[
        str,
        _option("Listening", "--http-listen", "For the live page, probes and own metrics.", metavar="HOST:PORT"),
    ] = "[::]:8080",
    tls_cert: Annotated[
        Path | None,
        _option("Listening", "--tls-cert", "Certificate for gRPC, PEM; read anew when it changes.", file=True),
    ] = None,
    tls_key: Annotated[Path | None, _option("Listening", "--tls-key", "Its key.", file=True)] = None,
    client_ca: Annotated[
        Path | None,
        _option("Listening", "--client-ca", "Mutual TLS: let in only clients that this CA signed.", file=True),
    ] = None,
    page_token_file: Annotated[
        Path | None,
        _option("Listening", "--page-token-file", "Token that the live page asks for; may change.", file=True),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        _option("Cluster", "--kubeconfig", "The cluster; left out, it is found as kubectl finds it.", file=True),
    ] = None,
    namespaces: Annotated[
        str, _option("Cluster", "--namespaces", "Serve only these, separated by commas.", metavar="NAME,…")
    ] = "",
    address: Annotated[
        str,
        _option(
            "Cluster",
            "--address",
            "By what scalerAddress triggers name this scaler; left out, vllm-scaler in its own namespace.",
            metavar="HOST[:PORT],…",
        ),
    ] = "",
    leader_elect: Annotated[
        bool,
        _option("Cluster", "--leader-elect", "Be ready only while holding the lease that replicas share."),
    ] = False,
    lease_name: Annotated[
        str, _option("Cluster", "--lease-name", "Name of that lease, in the scaler's own namespace.", metavar="NAME")
    ] = "vllm-scaler",
    ray: Annotated[
        bool,
        _option("Cluster", "--ray", "Carry the counts of RayWorkerGroups to KubeRay's RayClusters and RayServices."),
    ] = False,
    ray_token_file: Annotated[
        Path | None,
        _option("Cluster", "--ray-token-file", "Token that Ray's dashboards ask for; may change.", file=True),
    ] = None,
    warm: Annotated[
        Way | None,
        _option(
            "Cluster",
            "--warm",
            "Keep room on nodes as triggers ask (warmReplicas): by CapacityBuffers (`buffer`), by placeholder pods "
            "(`placeholders`), or by what the cluster has (`auto`).",
            metavar="WAY",
        ),
    ] = None,
    warm_priority_class: Annotated[
        str, _option("Cluster", "--warm-priority-class", "The PriorityClass of placeholder pods.", metavar="NAME")
    ] = "vllm-scaler-warm",
    warm_image: Annotated[
        str, _option("Cluster", "--warm-image", "Their image, which does nothing.", metavar="IMAGE")
    ] = "registry.k8s.io/pause:3.10",
    idle_first: Annotated[
        bool,
        _option(
            "Cluster",
            "--idle-first",
            "Before a scale-down, have ReplicaSets take idle pods first (pod-deletion-cost).",
        ),
    ] = False,
    protect_busy: Annotated[
        bool,
        _option(
            "Cluster",
            "--protect-busy",
            "Keep Karpenter and the Cluster Autoscaler from nodes whose pods load or are busy.",
        ),
    ] = False,
    allow_endpoints: Annotated[
        str,
        _option(
            "Cluster",
            "--allow-endpoints",
            "Let metadata name pods in these networks by address; without a cluster there is no other way.",
            metavar="CIDR,…",
        ),
    ] = "",
    prometheus: Annotated[
        str | None,
        _option("Reading pods", "--prometheus", "Ask this Prometheus instead of the pods.", metavar="URL"),
    ] = None,
    dcgm_url: Annotated[
        str | None,
        _option(
            "Reading pods",
            "--dcgm-url",
            "GPU use from DCGM exporters: http://{host_ip}:9400/metrics, or one address for all nodes.",
            metavar="URL",
        ),
    ] = None,
    bearer_token_file: Annotated[
        Path | None,
        _option("Reading pods", "--bearer-token-file", "Token that the pages (or Prometheus) ask for.", file=True),
    ] = None,
    ca_file: Annotated[
        Path | None,
        _option("Reading pods", "--ca-file", "CA of pages behind TLS (or of Prometheus).", file=True),
    ] = None,
    server_name: Annotated[
        str | None,
        _option(
            "Reading pods",
            "--server-name",
            "The name in the pods' certificates: pods are asked by IP address, which few certificates carry.",
            metavar="NAME",
        ),
    ] = None,
    policies_file: Annotated[
        Path | None,
        _option("Deciding", "--policies", "Your own policies: YAML, name → metadata.", file=True),
    ] = None,
    budgets_file: Annotated[
        Path | None,
        _option("Deciding", "--budgets", "GPUs that targets share: YAML, name → gpus and priorities.", file=True),
    ] = None,
    shadow: Annotated[
        bool, _option("Deciding", "--shadow", "Decide and explain, but tell KEDA the present count.")
    ] = False,
    record: Annotated[
        Path | None, _option("Deciding", "--record", "Write what was seen to this file.", metavar="FILE")
    ] = None,
    log_format: Annotated[
        LogFormat, _option("Logging", "--log-format", "`auto` is console on a terminal, else JSON.")
    ] = LogFormat.AUTO,
    log_level: Annotated[LogLevel, _option("Logging", "--log-level", "The least that is logged.")] = LogLevel.INFO,
) -> None:
    """Serve KEDA: read the queues of vLLM pods, decide replica counts, and answer with them.

    In a cluster the Helm chart runs it. By hand, for the cluster of your kubectl, or without one:

    \b
    vllm-scaler serve --shadow              # decides and explains, moves nothing
    vllm-scaler serve --record seen.jsonl   # for vllm-scaler backtest --recording
    KUBECONFIG=/dev/null vllm-scaler serve --allow-endpoints 127.0.0.0/8

    Each option is an environment variable, too: --http-listen is VLLM_SCALER_HTTP_LISTEN.

    Exit status: 0 after SIGTERM or Ctrl-C, 2 wrong use, 1 a port, a file or the lease was lost or cannot be had.
    """
    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("--tls-cert and --tls-key go together")
    if client_ca is not None and tls_cert is None:
        raise typer.BadParameter("--client-ca needs --tls-cert and --tls-key")
    _holds_something("--page-token-file", page_token_file)
    for option, value in (("--warm-priority-class", warm_priority_class), ("--warm-image", warm_image)):
        if not value.strip():
            raise typer.BadParameter("it is empty; left out, it is a good one", param_hint=option)
    tls = TlsFiles(tls_cert, tls_key, client_ca) if tls_cert and tls_key else None
    logs.configure(log_format, log_level)
    try:
        plan = Plan(
            ports=Ports(
                _parsed("--listen", Address.parse, listen),
                _parsed("--http-listen", Address.parse, http_listen),
                tls,
                page_token_file,
            ),
            kubeconfig=kubeconfig,
            namespaces=tuple(_words(namespaces)),
            addresses=tuple(_words(address)),
            lease=lease_name if leader_elect else None,
            allowed=_parsed("--allow-endpoints", parse_networks, allow_endpoints) if allow_endpoints else (),
            access=_access(ca_file, bearer_token_file, server_name),
            prometheus=prometheus,
            dcgm_url=dcgm_url,
            policies=policies.load(policies_file) if policies_file else {},
            budgets=budgets.load(budgets_file) if budgets_file else (),
            record=record,
            shadow=shadow,
            ray=ray,
            ray_token_file=ray_token_file,
            warm=warm,
            placeholders=Placeholders(warm_priority_class, warm_image),
            idle_first=idle_first,
            protect_busy=protect_busy,
        )
        calm_collector()
        uvloop.run(_run(plan))
    except SettingsError as error:
        _give_up(*error.problems)
    except (ConfigurationError, OSError, TlsError, RecordingError) as error:
        _give_up(str(error))


async def _run(plan: Plan) -> None:
    """Put the parts together and serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        source = (
            _parsed("--prometheus", lambda url: PrometheusSource(url, plan.access), plan.prometheus)
            if plan.prometheus
            else PodSource(plan.access)
        )
        stack.push_async_callback(source.close)
        world = World(NoCluster(), source, shadow=plan.shadow)
        if plan.dcgm_url:
            world.gpu = gpu = _parsed("--dcgm-url", lambda url: GpuUtilization(url, plan.access), plan.dcgm_url)
            stack.push_async_callback(gpu.close)
        if plan.record:
            recorder = _recorder(plan.record)
            stack.callback(recorder.close)
            world.observers.append(recording(recorder))
        targets = Targets(world, plan.policies, endpoints(plan.allowed) if plan.allowed else None)
        if plan.budgets:
            world.allowance = Budgets(targets, plan.budgets).allowance
        client = await _cluster(plan)
        if client is None:
            log.info("no cluster: only triggers with endpoints are served")
            host = await stack.enter_async_context(Host(targets, plan.ports))
            await host.lead()
            await host.wait(stop)
        else:
            await stack.enter_async_context(client)
            await _run_in_cluster(plan, stack, client, targets, stop)
        log.info("stopping")


async def _run_in_cluster(
    plan: Plan, stack: AsyncExitStack, client: ApiClient, targets: Targets, stop: asyncio.Event
) -> None:
    """Watch the cluster, and lead at once or while the lease is held."""
    identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    changed = asyncio.Event()
    election = None
    if plan.lease:
        election = Election(
            client, client.namespace, plan.lease, identity, on_started=changed.set, on_stopped=changed.set
        )
    events = EventRecorder(client, identity)

    def leads() -> bool:
        return election.is_leader if election else True

    announcer = Announcer(targets, events, leads)
    silence = Silence(targets, leads)

    listeners: list[Callable[[list[ScaledObject]], None]] = [targets.show, announcer.show, silence.show]

    def show() -> None:
        for listener in listeners:
            listener(discovery.scaled_objects())

    ours = OwnAddresses(plan.addresses or (f"vllm-scaler.{client.namespace}",))
    discovery = KubernetesDiscovery(client, ours, namespaces=plan.namespaces, on_change=show)
    targets.world.discovery = discovery
    targets.world.observers.append(announcer.note)
    if not plan.shadow:
        targets.world.observers.append(DirectDelivery(discovery.patch_scale, leads).note)
    keeper = None
    if plan.warm and not plan.shadow:
        wishes = warm_wishes(targets)
        keeper = WarmKeeper(client, discovery, events, wishes, leads, plan.warm, plan.placeholders, plan.namespaces)
        listeners.append(keeper.show)
    targets.world.observers.append(Warmth(keeper, SHADOW if plan.shadow else WITHOUT).note)
    marker = PodMarker(client)
    if (plan.idle_first or plan.protect_busy) and not plan.shadow:
        removal = Removal(marker, leads, idle_first=plan.idle_first, protect_busy=plan.protect_busy)
        listeners.append(removal.show)
        targets.world.observers.append(removal.note)
    host = await stack.enter_async_context(Host(targets, plan.ports))
    tasks = [_started(stack, part.run()) for part in (discovery, events, silence, marker)]
    if keeper:
        tasks.append(_started(stack, _after(discovery.listed, keeper.run)))
    if plan.ray:
        bridge = RayBridge(client, events, pod_loads(targets), leads, plan.namespaces, plan.ray_token_file)
        tasks.append(_started(stack, bridge.run()))
    if election:
        tasks.append(_started(stack, election.run()))
    tasks.append(_started(stack, _answer(_seen(discovery, client.server, host), election, changed, host, show)))
    await host.wait(stop, *tasks)


async def _after(seen: asyncio.Event, run: Callable[[], Coroutine[None, None, None]]) -> None:
    """Begin once something was seen: what is only not seen yet must not be taken for gone."""
    await seen.wait()
    await run()


async def _seen(discovery: KubernetesDiscovery, server: str, host: Host) -> None:
    """Wait for the first sight of the cluster, and say what to look at where it does not come soon."""
    host.wait_for(f"the cluster at {server} has not been seen yet")
    try:
        async with asyncio.timeout(SIGHT_S):
            await discovery.listed.wait()
    except TimeoutError:
        log.warning("the cluster does not answer", server=server, remedy=REMEDY)
        await discovery.listed.wait()
        log.info("the cluster answers", server=server)
    host.wait_for(STANDBY)


async def _answer(
    seen: Coroutine[None, None, None],
    election: Election | None,
    changed: asyncio.Event,
    host: Host,
    show: Callable[[], None],
) -> None:
    """Once the cluster was seen, lead; with an election while it says so, and say what was found while another led."""
    await seen
    if election is None:
        await host.lead()
    while True:
        await changed.wait()
        changed.clear()
        if election is not None and election.is_leader:
            await host.lead()
            show()
        else:
            await host.stand_by()


async def _cluster(plan: Plan) -> ApiClient | None:
    """The way to the cluster; None when there is none and none is needed. Raises ConfigurationError."""
    try:
        return await ApiClient.connect(plan.kubeconfig)
    except ConfigurationError as error:
        if plan.allowed and plan.kubeconfig is None and plan.lease is None and not plan.ray:
            return None
        hint = "; without a cluster, --allow-endpoints lets metadata name pods by address"
        raise ConfigurationError(f"{error}{'' if plan.allowed else hint}") from None


def _started(stack: AsyncExitStack, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """A task that is cancelled, and waited for, when the stack is left."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(end)
    return task


class NoCluster:
    """Stands for the cluster where there is none: only metadata with `endpoints` work."""

    def workload(self, namespace: str, name: str) -> Workload:  # noqa: ARG002
        """Raise DiscoveryError, always."""
        raise DiscoveryError("this scaler has no cluster; give the trigger `endpoints`")


def endpoints(allowed: Sequence[Network]) -> Callable[[TriggerSettings], Discovery]:
    """The discovery of a trigger that names its pods by address, as far as the operator allows it."""

    def find(settings: TriggerSettings) -> Discovery:
        minimum = 1 if settings.min_replicas is None else settings.min_replicas
        maximum = settings.max_replicas or DEFAULT_MAXIMUM
        try:
            return FixedEndpoints(settings.endpoints or "", allowed, minimum=minimum, maximum=maximum)
        except EndpointsError as error:
            raise SettingsError(error.problems) from None

    return find


def recording(recorder: Recorder) -> Observer:
    """An observer that writes every tick down."""

    def note(target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:  # noqa: ARG001
        replicas, limits = record.observation.replicas, record.observation.limits
        recorder.record(
            Tick(
                time=record.time,
                target=str(target),
                requested=replicas.requested,
                current=replicas.current,
                ready=replicas.ready,
                starting=replicas.starting,
                terminating=replicas.terminating,
                unschedulable=replicas.unschedulable,
                minimum=limits.minimum,
                maximum=limits.maximum,
                pods=outcomes,
                unschedulable_s=replicas.unschedulable_s,
                lacks=replicas.lacks,
            )
        )

    return note


def _access(ca_file: Path | None, bearer_token_file: Path | None, server_name: str | None) -> Access:
    """The way to the pages; files that cannot be meant are told now, not at every pod."""
    access = Access(ca_file=ca_file, bearer_token_file=bearer_token_file, server_name=server_name or None)
    try:
        tls_context(access).get()
    except OSError as error:
        raise typer.BadParameter(f"{ca_file} is no PEM file of certificates: {error}", param_hint="--ca-file") from None
    _holds_something("--bearer-token-file", bearer_token_file)
    return access


def _holds_something(option: str, file: Path | None) -> None:
    if file and not file.read_bytes().strip():
        raise typer.BadParameter(f"{file} is empty", param_hint=option)


def _recorder(path: Path) -> Recorder:
    try:
        return Recorder(path)
    except OSError as error:
        raise OSError(f"--record: {path} cannot be written: {error.strerror}") from None


def _words(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


def _parsed(option: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _give_up(*problems: str) -> None:
    for problem in problems:
        typer.echo(problem, err=True)
    raise typer.Exit(1)
