"""A real Prometheus beside a cluster, which finds the pods of one workload and scrapes them as most users' does."""

from __future__ import annotations

from tests.cluster.control_plane import ControlPlane
from tests.cluster.prometheus import Prometheus

SCRAPE_INTERVAL_S = 15
"""The Prometheus operator's and many installations'; Prometheus' own default is a minute."""


def prometheus_of(plane: ControlPlane, namespace: str, selector: str) -> Prometheus:
    """One that scrapes the pods which a label selector picks in a namespace; it ends with the control plane."""
    configuration = _configuration(plane, namespace, selector)
    one = Prometheus(plane.folder / "prometheus", plane.reserve_port("prometheus"), configuration)
    plane.run("prometheus", one.command)
    plane.wait_for("a ready Prometheus", one.is_ready)
    return one


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
