"""KServe's controller on a cluster of tests, in its mode of plain Deployments: without Knative, Istio and webhooks."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Self

import yaml

from tests.cluster import toolchain
from tests.cluster.certificates import Authority
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane

_NAMESPACE = "kserve"
_NAME = "kserve-controller"
_KINDS = (
    "serving.kserve.io_inferenceservices",
    "serving.kserve.io_servingruntimes",
    "serving.kserve.io_clusterservingruntimes",
    "serving.kserve.io_trainedmodels",
    "serving.kserve.io_inferencegraphs",
    "clusterstoragecontainer/serving.kserve.io_clusterstoragecontainers",
)


def install_kinds(plane: ControlPlane, *names: str) -> None:
    """KServe's resources (all that its controller watches unless named), without a controller that acts on them."""
    for name in names or _KINDS:
        plane.apply_crds(toolchain.module_dir("kserve") / "config" / "crd" / "full" / f"{name}.yaml")


class KServe:
    """The controller, as a context manager, with the administrator's rights. Its services go with it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __enter__(self) -> Self:
        install_kinds(self._cluster)
        self._cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
        self._configure()
        folder = self._cluster.folder / _NAME
        certificates = folder / "k8s-webhook-server" / "serving-certs"  # where it looks for them, in its TMPDIR
        certificates.mkdir(parents=True)
        pair = Authority(folder, _NAME).issue("tls", _NAME, hosts=("127.0.0.1",))
        pair.certificate.rename(certificates / "tls.crt")
        pair.key.rename(certificates / "tls.key")
        self._cluster.run(
            _NAME,
            [
                toolchain.binary("kserve"),
                "--metrics-addr=0",
                "--health-probe-addr=0",
                f"--webhook-port={self._cluster.reserve_port(_NAME)}",
            ],
            {"TMPDIR": str(folder), "POD_NAMESPACE": _NAMESPACE},
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.kubectl("delete", "inferenceservices", "--all", "--all-namespaces", "--timeout=60s")
        self._cluster.programs.pop(_NAME).stop()

    def _configure(self) -> None:
        """As KServe ships it, but with plain Deployments and nothing in front of them."""
        shipped = toolchain.module_dir("kserve") / "config" / "configmap" / "inferenceservice.yaml"
        configuration = yaml.safe_load(shipped.read_text())
        data = configuration["data"]
        data["deploy"] = json.dumps({"defaultDeploymentMode": "Standard"})
        data["ingress"] = json.dumps(json.loads(data["ingress"]) | {"disableIngressCreation": True})
        self._cluster.apply(configuration, namespace=_NAMESPACE)
