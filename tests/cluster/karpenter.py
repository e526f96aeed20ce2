"""Karpenter with its kwok provider on a cluster of tests: a real node autoscaler, whose nodes kwok carries."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Self

import httpx

from tests.cluster import toolchain
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import Manifest

_NAME = "karpenter"
_GATES = "CapacityBuffer=true,NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false"
_OFFERING = {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "zone-a"}
_INSTANCE = {
    "name": "one-gpu",
    "offerings": [
        {
            "Price": 1.0,
            "Available": True,
            "Requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in _OFFERING.items()],
        }
    ],
    "architecture": "amd64",
    "operatingSystems": ["linux"],
    "resources": {"cpu": "16", "memory": "64Gi", "pods": "20", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "1"},
}


def placement(pool: str) -> Manifest:
    """What a pod says to go to a pool's nodes, and to no other."""
    return {
        "nodeSelector": {"karpenter.sh/nodepool": pool},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }


class Karpenter:
    """It makes nodes with one GPU each, in pools, which take a while to come. A context manager."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __enter__(self) -> Self:
        module = toolchain.module_dir("karpenter")
        for definitions in (module / "pkg" / "apis" / "crds", module / "kwok" / "apis" / "crds"):
            self._cluster.apply_crds(definitions)
        types = self._cluster.folder / "instance-types.json"
        types.write_text(json.dumps([_INSTANCE]))
        probe, metrics = (self._cluster.reserve_port(_NAME) for _ in range(2))
        self._cluster.run(
            _NAME,
            [
                toolchain.binary("karpenter"),
                "-disable-leader-election",
                f"-instance-types-file-path={types}",
                f"-feature-gates={_GATES}",
                f"-health-probe-port={probe}",
                f"-metrics-port={metrics}",
            ],
            {"SYSTEM_NAMESPACE": "kube-system"},
        )
        self._cluster.wait_for("a ready Karpenter", lambda: _answers(f"http://127.0.0.1:{probe}/readyz"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.programs.pop(_NAME).stop()

    def pool(self, name: str, *, node_s: int, most: int = 100, consolidate_after: str = "Never") -> None:
        """Make or change a pool: how long a node takes, how many there may be, and when an empty one goes."""
        self._cluster.apply(
            {
                "apiVersion": "karpenter.kwok.sh/v1alpha1",
                "kind": "KWOKNodeClass",
                "metadata": {"name": name},
                "spec": {"nodeRegistrationDelay": f"{node_s}s"},
            },
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": {"name": name},
                "spec": {
                    "limits": {"nvidia.com/gpu": most},
                    "disruption": {
                        "consolidationPolicy": "WhenEmpty",
                        "consolidateAfter": consolidate_after,
                        "budgets": [{"nodes": "100%"}],
                    },
                    "template": {
                        "spec": {
                            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name},
                            "requirements": [
                                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
                            ],
                            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
                        }
                    },
                },
            },
        )

    def claims(self, pool: str) -> int:
        """How many nodes there are in a pool or on their way."""
        found = self._cluster.get(f"/apis/karpenter.sh/v1/nodeclaims?labelSelector=karpenter.sh/nodepool={pool}") or {}
        return len(found["items"])

    def nodes(self, pool: str) -> dict[str, Manifest]:
        """A pool's nodes by name, without those on their way out."""
        found = self._cluster.get(f"/api/v1/nodes?labelSelector=karpenter.sh/nodepool={pool}") or {}
        return {
            node["metadata"]["name"]: node for node in found["items"] if "deletionTimestamp" not in node["metadata"]
        }


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False
