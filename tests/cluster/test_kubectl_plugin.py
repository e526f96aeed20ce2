"""`kubectl vllm-scaler`: the real kubectl runs it, it finds the scaler in a real cluster and asks it."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import yaml

from scaler.cli.client import NO_SERVER, NO_TARGET
from scaler.serving.tls import TlsFiles
from tests.cluster import toolchain
from tests.cluster.certificates import Authority
from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.kubelet import forwarded_pod
from tests.cluster.release import rendered
from tests.protocol.world import NAME, NAMESPACE, Fleet, Keda, hosted, until

pytestmark = pytest.mark.toolchain

GRPC_PORT = 9090
PROGRAMS = {"kubectl-vllm_scaler": "kubectl_plugin", "kubectl_complete-vllm_scaler": "kubectl_completion"}


@dataclass(frozen=True)
class Told:
    """How a command ended."""

    status: int
    out: str
    error: str


@dataclass(frozen=True)
class User:
    """Somebody at a shell, with kubectl and the plugin on the PATH and a kubeconfig."""

    folder: Path
    environment: dict[str, str]

    def put(self, name: str, script: str) -> None:
        """Have a program on the PATH."""
        file = self.folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        command = ("kubectl", "vllm-scaler", *words)
        return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=self.environment)

    async def run(self, *words: str) -> Told:
        process = await self.start(*words)
        async with asyncio.timeout(120):
            out, error = await process.communicate()
        assert process.returncode is not None
        return Told(process.returncode, out.decode(), error.decode())


@pytest.fixture
async def scaler() -> AsyncIterator[str]:
    """Where a scaler listens that serves one model."""
    async with hosted(Fleet(ready=2, waiting=45)) as host:
        async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
            await Keda(channel).metric()
        yield str(host.grpc_address)


@pytest.fixture
def user(api_server: ControlPlane, tmp_path: Path) -> User:
    kubectl = toolchain.binary("kubernetes", "kubectl")
    environment = {
        "PATH": os.pathsep.join((str(tmp_path), str(kubectl.parent), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "KUBECONFIG": str(api_server.kubeconfig),
        "HOME": str(tmp_path),
        "COLUMNS": "200",
    }
    one = User(tmp_path, environment)
    for name, function in PROGRAMS.items():
        command = shlex.join([sys.executable, "-c", f"from scaler.cli import {function} as run; run()"])
        one.put(name, f'exec {command} "$@"')
    return one


@pytest.fixture
def service(api_server: ControlPlane, namespace: str) -> Iterator[Manifest]:
    """The chart's Service, in the cluster for one test."""
    made = of_chart("Service")
    api_server.apply(made, namespace=namespace)
    yield made
    api_server.kubectl("delete", "service", "vllm-scaler", "-n", namespace)


@pytest.fixture
def pod(api_server: ControlPlane, namespace: str, service: Manifest, scaler: str) -> Iterator[None]:
    """The chart's pod behind the Service: its gRPC port is the scaler's."""
    with forwarded_pod(api_server, namespace, of_chart("Deployment")["spec"]["template"], GRPC_PORT, scaler):
        yield


async def test_it_finds_the_scaler_by_its_label_and_asks_it(user: User, pod: None, namespace: str) -> None:
    told = await user.run("explain", NAME, "-n", NAMESPACE)
    assert told.status == 0, told.error
    assert "45 waiting" in told.out
    assert forwardings(namespace) == []
    listed = await user.run("targets")
    assert f"{NAMESPACE}/{NAME}" in listed.out
    assert (await user.run("explain", f"{NAMESPACE}/qwen")).status == NO_TARGET


@pytest.fixture
def two_contexts(api_server: ControlPlane, tmp_path: Path) -> Path:
    """A kubeconfig with one context in the namespace `default`, which is current, and `models` in the model's."""
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    (current,) = config["contexts"]
    config["contexts"].append({"name": "models", "context": current["context"] | {"namespace": NAMESPACE}})
    file = tmp_path / "two-contexts"
    file.write_text(yaml.safe_dump(config))
    return file


async def test_a_name_alone_is_in_the_namespace_of_the_context(user: User, pod: None, two_contexts: Path) -> None:
    chosen = ("--kubeconfig", str(two_contexts), "--context", "models")
    assert "45 waiting" in (await user.run("explain", NAME, *chosen)).out
    elsewhere = await user.run("explain", NAME, *chosen[:2])
    assert elsewhere.status == NO_TARGET
    assert "no target default/llama" in elsewhere.error


async def test_without_a_scaler_it_says_what_it_looked_for(user: User) -> None:
    told = await user.run("targets")
    assert told.status == NO_SERVER
    assert "app.kubernetes.io/name=vllm-scaler" in told.error
    assert "--service NAMESPACE/NAME" in told.error


async def test_of_several_scalers_one_must_be_named(
    user: User, pod: None, service: Manifest, api_server: ControlPlane, namespace: str
) -> None:
    second = api_server.create_namespace()
    api_server.apply(service, namespace=second)
    try:
        told = await user.run("targets")
        assert told.status == NO_SERVER
        for each in (namespace, second):
            assert f"{each}/vllm-scaler" in told.error
        named = await user.run("targets", "--service", f"{namespace}/vllm-scaler")
        assert f"{NAMESPACE}/{NAME}" in named.out
    finally:
        api_server.kubectl("delete", "service", "vllm-scaler", "-n", second)


RIGHTS = [
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create"]},
]


async def test_who_may_not_list_services_everywhere_names_it(
    user: User, pod: None, api_server: ControlPlane, namespace: str
) -> None:
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "looker"}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looker"}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    binding = {**rbac, "kind": "RoleBinding", "roleRef": role, "subjects": [account]}
    api_server.apply({**rbac, "kind": "Role", "rules": RIGHTS}, binding, namespace=namespace)
    user.environment["KUBECONFIG"] = str(api_server.service_account_kubeconfig(namespace, "default"))
    told = await user.run("targets")
    assert told.status == NO_SERVER
    assert "cannot list resource" in told.error
    assert "--service NAMESPACE/NAME" in told.error
    assert (await user.run("targets", "--service", f"{namespace}/vllm-scaler")).status == 0


async def test_a_scaler_named_in_the_environment_is_not_the_clusters(user: User, pod: None) -> None:
    user.environment["VLLM_SCALER_SERVER"] = "127.0.0.1:1"
    assert (await user.run("targets")).status == 0
    told = await user.run("targets", "--server", "127.0.0.1:1")
    assert told.status == 2
    assert "leave one or the other out" in told.error


async def test_over_tls_the_certificate_has_the_services_name(
    user: User, service: Manifest, api_server: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "pki", "test")
    pair = authority.issue("server", "scaler", hosts=[f"vllm-scaler.{namespace}.svc"])
    template = of_chart("Deployment")["spec"]["template"]
    async with hosted(Fleet(), tls=TlsFiles(pair.certificate, pair.key)) as host:
        with forwarded_pod(api_server, namespace, template, GRPC_PORT, str(host.grpc_address)):
            told = await user.run("targets", "--ca-file", str(authority.certificate))
            assert told.status == 0, told.error
            plain = await user.run("targets")
    assert plain.status == NO_SERVER
    assert "if it serves TLS: add --tls or --ca-file" in plain.error


async def test_forwarding_ends_with_the_command_that_a_signal_ends(user: User, pod: None, namespace: str) -> None:
    process = await user.start("explain", f"{NAMESPACE}/{NAME}", "--watch")
    assert process.stdout is not None
    async with asyncio.timeout(60):
        await process.stdout.readline()
    assert len(forwardings(namespace)) == 1
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    await until(lambda: forwardings(namespace) == [], "the end of the forwarding")


async def test_a_scaler_without_a_running_pod_is_told_in_kubectls_words(
    user: User, service: Manifest, namespace: str
) -> None:
    told = await user.run("targets")
    assert told.status == NO_SERVER
    assert f"kubectl cannot forward a port to {namespace}/vllm-scaler: error: " in told.error
    assert "is one of its pods running?" in told.error
    assert forwardings(namespace) == []


async def test_what_needs_no_scaler_is_there_too(user: User, api_server: ControlPlane, namespace: str) -> None:
    told = await user.run("init", "deployment/none", "-n", namespace)
    assert told.status == 3
    assert '"none" not found' in told.error
    assert (await user.run("lint", str(user.folder / "missing"))).status == 2
    page = (await user.run("--help")).out
    assert all(f"kubectl vllm-scaler {each}" in page for each in ("targets", "explain", "init"))
    assert "backtest" not in page


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ex"], ["explain"]),
        (["se"], []),
        (["explain", "--wat"], ["--watch"]),
        (["explain", "-n", "x", "--ag"], ["--ago"]),
    ],
    ids=str,
)
async def test_kubectls_own_completion_knows_its_words(user: User, words: list[str], completed: list[str]) -> None:
    asked = await asyncio.create_subprocess_exec(
        "kubectl", "__complete", "vllm-scaler", *words, stdout=asyncio.subprocess.PIPE, env=user.environment
    )
    async with asyncio.timeout(60):
        out, _ = await asked.communicate()
    assert out.decode().split() == [*completed, ":0"]


def test_the_package_has_both_programs_under_the_names_that_kubectl_looks_for() -> None:
    found = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert {name: f"scaler.cli:{function}" for name, function in PROGRAMS.items()}.items() <= found.items()


def of_chart(kind: str) -> Manifest:
    """The chart's one object of a kind, for any namespace."""
    (made,) = (each for each in rendered("{}") if each["kind"] == kind)
    return {**made, "metadata": {key: value for key, value in made["metadata"].items() if key != "namespace"}}


def forwardings(namespace: str) -> list[int]:
    """The processes that forward ports to a namespace."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if "port-forward" in words and f"--namespace={namespace}" in words:
            found.append(int(folder.name))
    return found
