"""Workloads for a cluster of tests: Deployments of one-GPU pods that play vLLM, and the ScaledObjects for them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.cluster.cluster import DRAIN, STARTUP
from tests.cluster.control_plane import Manifest

_AT_ONCE = {
    "tolerance": "0",
    "stabilizationWindowSeconds": 0,
    "policies": [{"type": "Pods", "value": 100, "periodSeconds": 15}],
}
"""The HPA's behaviour where the scaler alone decides how fast it goes."""


def deployment(
    name: str, *, replicas: int = 1, startup: str = "0s", drain: str = "0s", placement: Manifest | None = None
) -> Manifest:
    """A Deployment of pods labelled ``app=NAME`` with the given times to get ready and to end, such as 30s.

    `placement` is what their spec says about nodes.
    """
    labels = {"app": name}
    container = {"name": "vllm", "image": "vllm", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {
        "metadata": {"labels": labels, "annotations": {STARTUP: startup, DRAIN: drain}},
        "spec": {**(placement or {}), "containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def scaled_object(
    name: str,
    address: str,
    metadata: Mapping[str, str] | None = None,
    *,
    target: Manifest | None = None,
    maximum: int = 20,
) -> Manifest:
    """A ScaledObject for the Deployment of its name, or the kind of `target`; the HPA does at once what it is told."""
    trigger = {
        "type": "external-push",
        "metricType": "AverageValue",
        "metadata": {"scalerAddress": address, **(metadata or {})},
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {**(target or {}), "name": name},
            "minReplicaCount": 1,
            "maxReplicaCount": maximum,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": _AT_ONCE, "scaleDown": _AT_ONCE}}},
            "triggers": [trigger],
        },
    }
