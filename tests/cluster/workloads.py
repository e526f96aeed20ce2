"""Workloads for a cluster of tests: Deployments of one-GPU pods that play vLLM."""

from __future__ import annotations

from tests.cluster.cluster import DRAIN, STARTUP
from tests.cluster.control_plane import Manifest


def deployment(name: str, *, replicas: int = 1, startup: str = "0s", drain: str = "0s") -> Manifest:
    """A Deployment of pods labelled ``app=NAME`` with the given times to get ready and to end, such as 30s."""
    labels = {"app": name}
    container = {"name": "vllm", "image": "vllm", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {
        "metadata": {"labels": labels, "annotations": {STARTUP: startup, DRAIN: drain}},
        "spec": {"containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
