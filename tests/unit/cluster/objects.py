"""Objects of the Kubernetes API as JSON, built from few words."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CREATED = "2026-01-31T12:00:00Z"


def metadata(name: str, namespace: str = "serving", **more: object) -> Json:
    return {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": CREATED, **more}


def condition(kind: str, status: bool, at: str = CREATED, **more: str) -> Json:
    return {"type": kind, "status": str(status), "lastTransitionTime": at, **more}


def pod(
    name: str,
    *conditions: Json,
    namespace: str = "serving",
    labels: dict[str, str] | None = None,
    ports: list[Json] | None = None,
    status: Json | None = None,
    **more: object,
) -> Json:
    """A pod that runs on node-0; `more` goes into its metadata and `status` into its status."""
    return {
        "metadata": metadata(name, namespace, labels=labels or {"app": "llama"}, **more),
        "spec": {"nodeName": "node-0", "containers": [{"name": "vllm", "ports": ports or []}]},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "hostIP": "10.1.0.1",
            "conditions": list(conditions),
            **(status or {}),
        },
    }


def ready_pod(name: str, namespace: str = "serving", **labels: str) -> Json:
    return pod(name, condition("Ready", True), namespace=namespace, labels=labels or None)


def deployment(name: str, replicas: int = 1, current: int | None = None, namespace: str = "serving") -> Json:
    return {
        "metadata": metadata(name, namespace),
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}},
        "status": {"replicas": replicas if current is None else current},
    }


def scaled_object(
    name: str,
    *,
    namespace: str = "serving",
    address: str = "vllm-scaler.keda.svc:9090",
    target: Json | None = None,
    triggers: list[Json] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: object,
) -> Json:
    """A ScaledObject of the Deployment of its name, with one external trigger."""
    trigger = {"type": "external", "metadata": {"scalerAddress": address}}
    return {
        "metadata": metadata(name, namespace, generation=1, annotations=annotations or {}),
        "spec": {"scaleTargetRef": target or {"name": name}, "triggers": triggers or [trigger], **spec},
    }


def hpa(scaled_object: str, *, namespace: str = "serving", maximum: int = 100, **behavior: Json) -> Json:
    return {
        "metadata": metadata(f"keda-hpa-{scaled_object}", namespace),
        "spec": {
            "minReplicas": 1,
            "maxReplicas": maximum,
            "metrics": [{"type": "External", "external": {"metric": {"name": "vllm-replicas"}}}],
            "behavior": behavior,
        },
    }
