"""A control plane that acts: controllers (the HPA among them), a scheduler, and a node whose pods kwok carries."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane, Manifest

NODE = "node-0"
STARTUP = "fleet/startup"
"""Pod annotation: how long the pod runs before it is ready, such as 30s (0 s where absent)."""
DRAIN = "fleet/drain"
"""Pod annotation: how long the pod goes on running after it was deleted."""

_NODE_STAGES = ("node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml")
_UNTHROTTLED = ("--kube-api-qps=1000", "--kube-api-burst=1000")  # as shipped, 300 pods take a quarter of a minute
_CAPACITY = {"cpu": "100k", "memory": "1Pi", "pods": "100k", "nvidia.com/gpu": "100k"}


class Cluster(ControlPlane):
    """Workloads get pods, and the pods get nodes, addresses and readiness, but no container runs.

    A pod's address lies in ``pod_network``, a part of 127.0.0.0/8 that is this cluster's alone on the machine: a
    test can listen on it and so be the pod.
    """

    def launch(self) -> None:
        """Starts controllers, scheduler and kwok, and registers a node."""
        super().launch()
        self.pod_network = self._ports.reserve_network()
        self._start_controllers()
        self._start_kwok()

    def wait_until_ready(self) -> None:
        """Returns when the node is ready and the controllers work."""
        super().wait_until_ready()
        self.wait_for("a ready node", self._node_is_ready)
        self.wait_for("working controllers", lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default"))

    def ready_pods(self, namespace: str, selector: str = "") -> list[str]:
        """Names of the pods that are ready."""
        pods = self.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")
        return [pod["metadata"]["name"] for pod in (pods or {}).get("items", []) if is_ready(pod)]

    def _start_controllers(self) -> None:
        pki = self.folder / "pki"
        manager = self._user("kube-controller-manager", "system:kube-controller-manager")
        self.run(
            "kube-controller-manager",
            [
                toolchain.binary(self._kubernetes, "kube-controller-manager"),
                f"--kubeconfig={manager}",
                "--leader-elect=false",
                "--secure-port=0",
                *_UNTHROTTLED,
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={pki / 'sa.key'}",
                f"--root-ca-file={self.authority.certificate}",
            ],
        )
        scheduler = self._user("kube-scheduler", "system:kube-scheduler")
        self.run(
            "kube-scheduler",
            [
                toolchain.binary(self._kubernetes, "kube-scheduler"),
                f"--kubeconfig={scheduler}",
                "--leader-elect=false",
                "--secure-port=0",
                *_UNTHROTTLED,
            ],
        )

    def _start_kwok(self) -> None:
        stages = toolchain.module_dir("kwok") / "kustomize" / "stage"
        self.run(
            "kwok",
            [
                toolchain.binary("kwok"),
                f"--kubeconfig={self.kubeconfig}",
                "--manage-all-nodes=true",
                f"--cidr={self.pod_network}",
                "--node-ip=127.0.0.1",
                "--node-lease-duration-seconds=40",
                *(f"--config={stages / file}" for file in _NODE_STAGES),
                f"--config={Path(__file__).with_name('stages.yaml')}",
            ],
        )
        status = {"capacity": _CAPACITY, "allocatable": _CAPACITY}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "status": status}
        self.api.post("/api/v1/nodes", json=node).raise_for_status()

    def _node_is_ready(self) -> bool:
        node = self.get(f"/api/v1/nodes/{NODE}")
        return node is not None and is_ready(node)


def is_ready(thing: Manifest) -> bool:
    """Whether the Ready condition of a pod or node is True."""
    conditions = thing["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
