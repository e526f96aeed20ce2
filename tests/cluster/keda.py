"""A cluster on which KEDA runs: its operator, metrics adapter and admission webhooks, with the rights KEDA ships."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import httpx
import yaml

from tests.cluster import toolchain
from tests.cluster.certificates import Authority, KeyPair
from tests.cluster.cluster import Cluster

NAMESPACE = "keda"

_METRICS_API = "v1beta1.external.metrics.k8s.io"
_ENVIRONMENT = {"POD_NAMESPACE": NAMESPACE, "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE, "WATCH_NAMESPACE": ""}
_RIGHTS = (
    "general/namespace.yaml",
    "service_account/service_account.yaml",
    "rbac/role.yaml",
    "rbac/role_binding.yaml",
    "metrics-server/role.yaml",
    "metrics-server/role_binding.yaml",
)


class KedaCluster(Cluster):
    """ScaledObjects work: give a trigger's scaler by a loopback address, since no Service name resolves.

    ``keda`` is the part of the toolchain that runs, ``operator_options`` are more options of its operator.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        kubernetes: str = "kubernetes",
        keda: str = "keda",
        operator_options: Sequence[str] = (),
    ) -> None:
        super().__init__(port=port, kubernetes=kubernetes)
        self._keda = keda
        self._operator_options = operator_options

    def launch(self) -> None:
        """Installs KEDA's definitions and rights, and starts its programs."""
        super().launch()
        manifests = toolchain.module_dir(self._keda) / "config"
        self.apply_crds(manifests / "crd" / "bases")
        self.kubectl("apply", "--server-side", *(f"--filename={manifests / file}" for file in _RIGHTS))
        kubeconfig = self.service_account_kubeconfig(NAMESPACE, "keda-operator")
        keda_ca = Authority(self.folder / "keda", "keda")
        services = tuple(f"{name}.{NAMESPACE}.svc" for name in ("keda-operator", "keda-metrics-apiserver"))
        server = keda_ca.issue("tls", "keda", hosts=("localhost", "127.0.0.1", *services))

        metrics_service = self._ports.reserve("keda-operator")
        self._probes = [
            self._start_operator(kubeconfig, server, metrics_service),
            self._start_webhooks(kubeconfig, server, keda_ca, manifests),
        ]
        self._start_adapter(kubeconfig, server, keda_ca, metrics_service)

    def wait_until_ready(self) -> None:
        """Returns when KEDA reconciles, its metrics API is available and its webhooks answer."""
        super().wait_until_ready()
        self.wait_for("a ready operator and webhooks", lambda: all(map(_answers, self._probes)))
        self.wait_for(f"the API {_METRICS_API}", self._metrics_api_is_available)

    def _start_operator(self, kubeconfig: Path, server: KeyPair, metrics_service: int) -> str:
        probe = self._ports.reserve("keda-operator")
        self.run(
            "keda-operator",
            [
                toolchain.binary(self._keda, "operator"),
                f"--kubeconfig={kubeconfig}",
                f"--cert-dir={server.certificate.parent}",
                f"--metrics-service-bind-address=127.0.0.1:{metrics_service}",
                f"--health-probe-bind-address=127.0.0.1:{probe}",
                "--metrics-bind-address=0",
                "--zap-encoder=console",
                *self._operator_options,
            ],
            _ENVIRONMENT,
        )
        return f"http://127.0.0.1:{probe}/readyz"

    def _start_adapter(self, kubeconfig: Path, server: KeyPair, ca: Authority, metrics_service: int) -> None:
        port = self._ports.reserve("keda-adapter")
        self.run(
            "keda-adapter",
            [
                toolchain.binary(self._keda, "adapter"),
                f"--lister-kubeconfig={kubeconfig}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={server.certificate.parent}",
                f"--tls-cert-file={server.certificate}",
                f"--tls-private-key-file={server.key}",
                f"--metrics-service-address=localhost:{metrics_service}",
                "--port=0",
                "--zap-encoder=console",
            ],
            {**_ENVIRONMENT, "KUBECONFIG": str(kubeconfig)},
        )
        group, version = "external.metrics.k8s.io", "v1beta1"
        service = {"name": "keda-metrics-apiserver", "namespace": NAMESPACE}
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": service,
                # The one kind of Service that leads to a program outside the cluster's network.
                "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": _METRICS_API},
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": {**service, "port": port},
                    "caBundle": _bundle(ca),
                },
            },
            namespace=NAMESPACE,
        )

    def _start_webhooks(self, kubeconfig: Path, server: KeyPair, ca: Authority, manifests: Path) -> str:
        port, probe = self._ports.reserve("keda-webhooks"), self._ports.reserve("keda-webhooks")
        self.run(
            "keda-webhooks",
            [
                toolchain.binary(self._keda, "webhooks"),
                f"--kubeconfig={kubeconfig}",
                f"--cert-dir={server.certificate.parent}",
                f"--port={port}",
                f"--health-probe-bind-address=127.0.0.1:{probe}",
                "--metrics-bind-address=0",
                "--zap-encoder=console",
            ],
            _ENVIRONMENT,
        )
        configuration = yaml.safe_load((manifests / "webhooks" / "validation_webhooks.yaml").read_text())
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": _bundle(ca)}
            webhook["failurePolicy"] = "Fail"  # as shipped a webhook that does not answer would go unnoticed
        self.apply(configuration)
        return f"http://127.0.0.1:{probe}/readyz"

    def _metrics_api_is_available(self) -> bool:
        found = self.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{_METRICS_API}")
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _bundle(ca: Authority) -> str:
    return base64.b64encode(ca.certificate.read_bytes()).decode()
