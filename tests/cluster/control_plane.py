"""A real Kubernetes API server: etcd and kube-apiserver on loopback, up in seconds, gone without a trace."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import yaml

from tests.cluster import audit, toolchain
from tests.cluster.audit import ApiCall
from tests.cluster.certificates import Authority, KeyPair, write_signing_key
from tests.cluster.programs import Ports, Program, stop_all, wait_for

_T = TypeVar("_T")
Manifest = Mapping[str, Any]


class ControlPlane:
    """An API server with nothing behind it: objects are kept as they are sent, no controller acts on them.

    A context manager. Everything lies in a temporary folder that goes when it stops (unless ``keep_logs``).
    ``port`` is the API server's, any free one unless given; ``kubernetes`` is the part of the toolchain that runs.

    Attributes: ``url``; ``kubeconfig``, the administrator's; ``api``, an HTTP client with the administrator's
    rights; ``programs`` by name, to be stopped and started by a test of faults.
    """

    def __init__(self, *, port: int = 0, kubernetes: str = "kubernetes") -> None:
        self._kubernetes = kubernetes
        self._ports = Ports()
        self.port = self._ports.reserve("kube-apiserver", port)
        self.url = f"https://127.0.0.1:{self.port}"
        self.folder = Path(tempfile.mkdtemp(prefix="vllm-scaler-cluster-"))
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self.programs: dict[str, Program] = {}
        self.keep_logs = False
        self.authority = Authority(self.folder / "pki", "kubernetes")
        admin = self.authority.issue("admin", "kubernetes-admin", organization="system:masters")
        self.write_kubeconfig(self.kubeconfig, certificate=admin)
        self._tls = self._tls_of(admin)
        self.api = httpx.Client(base_url=self.url, verify=self._tls, timeout=30.0, trust_env=False)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as error:
            self.keep_logs = isinstance(error, Exception)  # Ctrl-C is no failure
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when everything is ready. Raises ProgramError, ToolchainError or TimeoutError."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Starts the programs; waits only for the API server, which all others need."""
        etcd_url = self._start_etcd()
        self._start_api_server(etcd_url)
        self.wait_for("a ready API server", self.is_ready)

    def wait_until_ready(self) -> None:
        """Returns when the launched programs do their work."""

    def stop(self) -> None:
        """Stops every program and removes the folder."""
        stop_all(reversed(self.programs.values()))
        self.api.close()
        self._ports.release()
        if not self.keep_logs:
            self.remove()

    def remove(self) -> None:
        """Removes the folder, logs included."""
        shutil.rmtree(self.folder)

    def is_ready(self) -> bool:
        """Whether the API server answers that it is ready."""
        try:
            return self.api.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def run(self, name: str, command: list[str | Path], environment: Mapping[str, str] | None = None) -> Program:
        """Starts a program that belongs to this control plane and ends with it."""
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        program = Program(name, command, logs / f"{name}.log", self._environment(environment or {}))
        self.programs[name] = program
        program.start()
        return program

    def wait_for(self, what: str, condition: Callable[[], _T | None], *, timeout_s: float = 60.0) -> _T:
        """The first true value of ``condition``; an error says what was missed or which program ended."""
        return wait_for(what, condition, timeout_s=timeout_s, programs=self.programs.values())

    def logs(self) -> str:
        """The last lines of every program's log, for the report of a failed test."""
        return "\n".join(program.tail() for program in self.programs.values())

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints, as the administrator. Raises RuntimeError with what it said on failure."""
        return self.client(toolchain.binary(self._kubernetes, "kubectl"), *arguments, stdin=stdin)

    def client(self, program: Path, *arguments: str, stdin: str | None = None) -> str:
        """What a client's program (kubectl, helm) prints, as the administrator. Raises RuntimeError as kubectl does."""
        done = subprocess.run(
            [program, *arguments],
            input=stdin,
            env=os.environ | self._environment({}),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program.name} {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *manifests: Manifest, namespace: str = "default") -> None:
        """Creates or changes objects as ``kubectl apply --server-side`` does."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self.kubectl("apply", "--server-side", "--force-conflicts", "-n", namespace, "-f", "-", stdin=text)

    def apply_crds(self, folder: Path) -> None:
        """Installs the CustomResourceDefinitions of a folder and waits until they can be used."""
        applied = self.kubectl("apply", "--server-side", "--output=name", "-f", str(folder)).split()
        self.wait_for_crds(*(name.rpartition("/")[2] for name in applied))

    def wait_for_crds(self, *names: str) -> None:
        """Returns when the CustomResourceDefinitions can be used. `kubectl wait` fails on those without conditions."""
        for name in names:
            self.wait_for(f"the definition {name}", partial(self._is_established, name))

    def _is_established(self, name: str) -> bool:
        found = self.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}") or {}
        conditions = found.get("status", {}).get("conditions") or ()
        return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)

    def get(self, path: str) -> dict[str, Any] | None:
        """An object or a list by its API path, None where there is none."""
        reply = self.api.get(path)
        if reply.status_code == httpx.codes.NOT_FOUND:
            return None
        reply.raise_for_status()
        found: dict[str, Any] = reply.json()
        return found

    def async_client(self) -> httpx.AsyncClient:
        """A client of its own with the administrator's rights."""
        return httpx.AsyncClient(base_url=self.url, verify=self._tls, trust_env=False)

    def create_namespace(self, prefix: str = "test") -> str:
        """A new namespace in which pods can be created: it has the ServiceAccount a controller would make."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.api.post("/api/v1/namespaces", json=namespace).raise_for_status()
        reply = self.api.post(f"/api/v1/namespaces/{name}/serviceaccounts", json=account)
        if reply.status_code != httpx.codes.CONFLICT:  # the controller, where one runs, may have been first
            reply.raise_for_status()
        return name

    def token(self, namespace: str, service_account: str) -> str:
        """A token of a ServiceAccount, good for a day."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86_400},
        }
        reply = self.api.post(path, json=request).raise_for_status()
        token: str = reply.json()["status"]["token"]
        return token

    def reserve_port(self, owner: str) -> int:
        """A loopback port for a program that is to run beside this control plane, its own until that stops."""
        return self._ports.reserve(owner)

    def calls(self, namespace: str, service_account: str) -> list[ApiCall]:
        """What a ServiceAccount has asked of the API server, oldest first (kube-system's are not kept)."""
        return list(audit.calls(self.folder, namespace, service_account))

    def service_account_kubeconfig(self, namespace: str, service_account: str) -> Path:
        """A kubeconfig file with the rights of a ServiceAccount."""
        path = self.folder / f"{namespace}-{service_account}.kubeconfig"
        self.write_kubeconfig(path, token=self.token(namespace, service_account), namespace=namespace)
        return path

    def write_kubeconfig(
        self,
        path: Path,
        *,
        certificate: KeyPair | None = None,
        token: str | None = None,
        namespace: str = "default",
    ) -> None:
        """A kubeconfig file for the user whom the certificate or the token names."""
        user: dict[str, str] = {}
        if certificate is not None:
            user = {"client-certificate": str(certificate.certificate), "client-key": str(certificate.key)}
        if token is not None:
            user = {"token": token}
        cluster = {"server": self.url, "certificate-authority": str(self.authority.certificate)}
        context = {"cluster": "local", "user": "user", "namespace": namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "local", "context": context}],
            "current-context": "local",
        }
        path.write_text(yaml.safe_dump(config))

    def _user(self, name: str, common_name: str) -> Path:
        """A kubeconfig file of a program that Kubernetes knows by a user name of its own."""
        path = self.folder / f"{name}.kubeconfig"
        self.write_kubeconfig(path, certificate=self.authority.issue(name, common_name))
        return path

    def _start_etcd(self) -> str:
        client, peer = (f"http://127.0.0.1:{self._ports.reserve('etcd')}" for _ in range(2))
        self.run(
            "etcd",
            [
                toolchain.binary("etcd"),
                "--name=local",
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=local={peer}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
        )
        return client

    def _start_api_server(self, etcd_url: str) -> None:
        pki = self.folder / "pki"
        server = self.authority.issue("kube-apiserver", "kube-apiserver", hosts=("127.0.0.1", "localhost"))
        front = Authority(self.folder / "pki" / "front-proxy", "front-proxy")
        proxy = front.issue("client", "front-proxy-client")
        write_signing_key(pki / "sa.key", pki / "sa.pub")
        self.run(
            "kube-apiserver",
            [
                toolchain.binary(self._kubernetes, "kube-apiserver"),
                f"--etcd-servers={etcd_url}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                "--endpoint-reconciler-type=none",
                "--service-cluster-ip-range=10.0.0.0/16",
                "--authorization-mode=RBAC",
                f"--cert-dir={pki}",
                f"--tls-cert-file={server.certificate}",
                f"--tls-private-key-file={server.key}",
                f"--client-ca-file={self.authority.certificate}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={pki / 'sa.pub'}",
                f"--service-account-signing-key-file={pki / 'sa.key'}",
                # The aggregation layer: how it proves itself to an extension's server.
                f"--requestheader-client-ca-file={front.certificate}",
                "--requestheader-allowed-names=front-proxy-client",
                "--requestheader-username-headers=X-Remote-User",
                "--requestheader-group-headers=X-Remote-Group",
                "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                f"--proxy-client-cert-file={proxy.certificate}",
                f"--proxy-client-key-file={proxy.key}",
                *audit.arguments(self.folder),
            ],
        )

    def _tls_of(self, user: KeyPair) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(user.certificate, user.key)
        return context

    def _environment(self, further: Mapping[str, str]) -> dict[str, str]:
        """Programs find neither the user's kubeconfig nor a proxy, and keep their caches in our folder."""
        return {"HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig), "NO_PROXY": "*", **further}
