"""The objects that keep room on nodes, as they are applied."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from scaler.cluster.client import Json
from scaler.cluster.model import ScaledObject
from scaler.cluster.warm.shape import Shape

LABEL = "vllm-scaler.dev/warm"
"""On everything that is made here."""
_LONGEST_NAME = 63
_USER = 65535
"""The one that pause images are made for."""


@dataclass(frozen=True, slots=True)
class Placeholders:
    """What placeholder pods are made with."""

    priority_class: str
    image: str


def name_of(scaled_object: str) -> str:
    """Return the name of the objects for a ScaledObject; it can be a label's value too."""
    name = f"{scaled_object}-warm"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{scaled_object[:49]}-{hashlib.sha256(scaled_object.encode()).hexdigest()[:8]}-warm"


def pod_template(owner: ScaledObject, shape: Shape, made_with: Placeholders) -> Json:
    """The PodTemplate of which a CapacityBuffer keeps so many places."""
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": _metadata(owner),
        "template": _template(owner, shape, made_with.image),
    }


def capacity_buffer(owner: ScaledObject, replicas: int) -> Json:
    """The CapacityBuffer that refers to it; `replicas` counts pods."""
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": _metadata(owner),
        "spec": {"podTemplateRef": {"name": name_of(owner.name)}, "replicas": replicas},
    }


def deployment(owner: ScaledObject, shape: Shape, replicas: int, made_with: Placeholders) -> Json:
    """Placeholder pods. They go at once, and anew when their shape changes: never twice as many."""
    template = _template(owner, shape, made_with.image)
    template["spec"]["priorityClassName"] = made_with.priority_class
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(owner),
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 0,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {LABEL: name_of(owner.name)}},
            "template": template,
        },
    }


def _metadata(owner: ScaledObject) -> Json:
    return {
        "name": name_of(owner.name),
        "namespace": owner.namespace,
        "labels": {LABEL: name_of(owner.name)},
        "ownerReferences": [
            {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": owner.name, "uid": owner.uid}
        ],
    }


def _template(owner: ScaledObject, shape: Shape, image: str) -> Json:
    container = {
        "name": "placeholder",
        "image": image,
        "resources": shape.resources,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "metadata": {"labels": {LABEL: name_of(owner.name)}},
        "spec": {
            **shape.placement,
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }
