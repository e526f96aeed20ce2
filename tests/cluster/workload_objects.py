"""Objects that a test puts into an API server without controllers: targets, their pods, ScaledObjects and HPAs."""

from __future__ import annotations

from typing import Any

import httpx

from tests.cluster.control_plane import ControlPlane

Json = dict[str, Any]

OWN_ADDRESS = "vllm-scaler.keda.svc:9090"
GROUP_KIND = {"apiVersion": "test.example.com/v1", "kind": "ModelGroup"}
GROUPS = "/apis/test.example.com/v1/namespaces/{}/modelgroups"


def target(kind: str, name: str, replicas: int) -> Json:
    """A Deployment, StatefulSet or ReplicaSet of pods labelled `app=NAME`."""
    labels = {"app": name}
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "vllm", "image": "vllm"}]}},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def scaled_object(name: str, reference: Json | None = None, *, address: str = OWN_ADDRESS, **spec: Any) -> Json:
    """A ScaledObject of the Deployment of its name unless another is given."""
    trigger = {"type": "external", "metadata": {"scalerAddress": address}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": reference or {"name": name}, "triggers": [trigger], **spec},
    }


def hpa(name: str, *, maximum: int = 100, **behavior: Json) -> Json:
    """The HPA that KEDA would make of a ScaledObject of that name."""
    metric = {"type": "External", "external": {"metric": {"name": "s0-x"}, "target": {"type": "Value", "value": "1"}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"keda-hpa-{name}"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": maximum,
            "metrics": [metric],
            "behavior": behavior,
        },
    }


def group_definition() -> Json:
    """A custom kind with `/scale`, whose selector its status carries."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "modelgroups.test.example.com"},
        "spec": {
            "group": "test.example.com",
            "scope": "Namespaced",
            "names": {"plural": "modelgroups", "singular": "modelgroup", "kind": "ModelGroup"},
            "versions": [version],
        },
    }


def create_pod(plane: ControlPlane, namespace: str, name: str, labels: dict[str, str], *, ready: bool = True) -> None:
    """A pod on no node whose status says that it serves, or that no node has room for it."""
    pod = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "vllm", "image": "vllm"}]}}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    plane.api.post(pods, json=pod).raise_for_status()
    set_status(plane, f"{pods}/{name}", pod_status(ready=ready))


def pod_status(*, ready: bool) -> Json:
    if ready:
        return {"phase": "Running", "podIP": "10.0.0.7", "conditions": [_condition("Ready", "True")]}
    no_room = _condition("PodScheduled", "False", reason="Unschedulable", message="0/4 nodes are available")
    return {"phase": "Pending", "conditions": [no_room]}


def _condition(kind: str, status: str, **more: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": "2026-01-31T12:00:00Z", **more}


def set_status(plane: ControlPlane, path: str, status: Json) -> None:
    reply = plane.api.patch(
        f"{path}/status", json={"status": status}, headers={"Content-Type": "application/merge-patch+json"}
    )
    reply.raise_for_status()


def delete(plane: ControlPlane, path: str) -> None:
    """Deletes an object at once, whatever its grace period."""
    reply = plane.api.request("DELETE", path, json={"gracePeriodSeconds": 0})
    if reply.status_code != httpx.codes.NOT_FOUND:
        reply.raise_for_status()
