"""KubeRay's operator on a cluster of tests, with the rights it ships, and the objects that it acts on.

No Ray runs in the pods: heads never answer. So KubeRay makes and removes pods and clusters as in life, but a RayService
never learns that its applications run; `serve_with` says so in its place.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from tests.cluster import toolchain
from tests.cluster.cluster import DRAIN, STARTUP, Cluster
from tests.cluster.control_plane import Manifest
from tests.cluster.workload_objects import set_status

GROUP = "gpu"
"""The name of the worker group of every cluster here."""
CLUSTERS = "/apis/ray.io/v1/namespaces/{}/rayclusters"
SERVICES = "/apis/ray.io/v1/namespaces/{}/rayservices"
WORKER_GROUPS = "/apis/vllm-scaler.dev/v1alpha1/namespaces/{}/rayworkergroups"

_NAMESPACE = "kuberay"
_NAME = "kuberay-operator"


def install_kinds(cluster: Cluster) -> None:
    """KubeRay's resources, without an operator that acts on them."""
    cluster.apply_crds(toolchain.module_dir("kuberay") / "config" / "crd" / "bases")


class KubeRay:
    """The operator, as a context manager."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __enter__(self) -> Self:
        install_kinds(self._cluster)
        rights = toolchain.module_dir("kuberay") / "config" / "rbac"
        self._cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
        account = yaml.safe_load((rights / "service_account.yaml").read_text())
        binding = yaml.safe_load((rights / "role_binding.yaml").read_text())
        binding["subjects"][0]["namespace"] = _NAMESPACE
        role = yaml.safe_load((rights / "role.yaml").read_text())
        self._cluster.apply(account, role, binding, namespace=_NAMESPACE)
        probe = self._cluster.reserve_port(_NAME)
        self._command = [
            toolchain.binary("kuberay"),
            "-enable-leader-election=false",
            "-metrics-addr=0",
            f"-health-probe-bind-address=127.0.0.1:{probe}",
        ]
        self._program = self._cluster.run(
            _NAME,
            self._command,
            {
                "KUBECONFIG": str(self._cluster.service_account_kubeconfig(_NAMESPACE, _NAME)),
                "ENABLE_INIT_CONTAINER_INJECTION": "false",  # it would make workers wait for their head to answer
            },
        )
        self._cluster.wait_for("a ready KubeRay operator", lambda: _answers(f"http://127.0.0.1:{probe}/readyz"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.programs.pop(_NAME).stop()

    def restart(self, *gates: str) -> None:
        """Forget everything that is not in the cluster, and go on with the feature gates that are given."""
        self._program.stop()
        self._program.command = [*self._command, *(f"-feature-gates={gate}=true" for gate in gates)]
        self._program.start()


def cluster_spec(
    *,
    replicas: int | None = None,
    minimum: int = 0,
    maximum: int = 10,
    hosts: int = 1,
    autoscaled: bool = False,
    drain: str = "0s",
    image: str = "rayproject/ray:2.52.0",
    dashboard: int = 8265,
) -> dict[str, Any]:
    """A head, with the dashboard's port, and one worker group, whose pods take the time `drain` to end."""
    group: dict[str, Any] = {
        "groupName": GROUP,
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "numOfHosts": hosts,
        "rayStartParams": {},
        "template": _template("ray-worker", image, drain),
    }
    if replicas is not None:
        group["replicas"] = replicas
    head = {"rayStartParams": {}, "template": _template("ray-head", image, "0s", dashboard=dashboard)}
    return {"enableInTreeAutoscaling": autoscaled, "headGroupSpec": head, "workerGroupSpecs": [group]}


def ray_cluster(name: str, **spec: Any) -> Manifest:
    """A RayCluster; `spec` as for `cluster_spec`."""
    metadata = {"name": name}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": cluster_spec(**spec)}


def ray_service(name: str, **spec: Any) -> Manifest:
    """A RayService; `spec` as for `cluster_spec`."""
    config = {"serveConfigV2": "applications: []", "rayClusterConfig": cluster_spec(**spec)}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": name}, "spec": config}


def worker_group(name: str, *, kind: str = "RayCluster", group: str = GROUP, **spec: Any) -> Manifest:
    """A RayWorkerGroup for the target of its own name, unless `target` names another."""
    target = {"kind": kind, "name": spec.pop("target", name)}
    return {
        "apiVersion": "vllm-scaler.dev/v1alpha1",
        "kind": "RayWorkerGroup",
        "metadata": {"name": name},
        "spec": {"targetRef": target, "group": group, **spec},
    }


def serve_with(cluster: Cluster, namespace: str, service: str, *, active: str, pending: str = "") -> None:
    """Say which clusters a RayService has, as its operator does once applications run."""
    status = {
        "activeServiceStatus": {"rayClusterName": active},
        "pendingServiceStatus": {"rayClusterName": pending},
    }
    set_status(cluster, f"{SERVICES.format(namespace)}/{service}", status)


def _template(container: str, image: str, drain: str, **ports: int) -> Manifest:
    named = [{"name": name, "containerPort": port} for name, port in ports.items()]
    made = {"name": container, "image": image, "ports": named, "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"annotations": {STARTUP: "0s", DRAIN: drain}}, "spec": {"containers": [made]}}


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False
