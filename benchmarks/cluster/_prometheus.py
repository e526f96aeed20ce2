"""A real Prometheus beside a cluster, which finds the pods of one workload and scrapes them as most users' does."""

from __future__ import annotations

import httpx
import yaml

from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane

SCRAPE_INTERVAL_S = 15
"""The Prometheus operator's and many installations'; Prometheus' own default is a minute."""


class Prometheus:
    """Scrapes the pods that a label selector picks in a namespace; it ends with the control plane."""

    def __init__(self, plane: ControlPlane, namespace: str, selector: str) -> None:
        self.address = f"127.0.0.1:{plane.reserve_port('prometheus')}"
        folder = plane.folder / "prometheus"
        folder.mkdir()
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(_configuration(plane, namespace, selector)))
        plane.run(
            "prometheus",
            [
                toolchain.binary("prometheus"),
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.address}",
            ],
        )
        plane.wait_for("a ready Prometheus", self._is_ready)

    def value(self, query: str) -> float | None:
        """The value of an instant query's only series; None where it has none."""
        reply = httpx.get(f"http://{self.address}/api/v1/query", params={"query": query}, trust_env=False)
        result = reply.raise_for_status().json()["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"http://{self.address}/-/ready", trust_env=False).is_success
        except httpx.TransportError:
            return False


def _configuration(plane: ControlPlane, namespace: str, selector: str) -> dict[str, object]:
    discovery = {
        "role": "pod",
        "kubeconfig_file": str(plane.kubeconfig),
        "namespaces": {"names": [namespace]},
        "selectors": [{"role": "pod", "label": selector}],
    }
    relabeling = [
        {"source_labels": ["__meta_kubernetes_pod_ip"], "target_label": "__address__", "replacement": "$1:8000"},
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
    ]
    job = {"job_name": "vllm", "kubernetes_sd_configs": [discovery], "relabel_configs": relabeling}
    return {"global": {"scrape_interval": f"{SCRAPE_INTERVAL_S}s"}, "scrape_configs": [job]}
