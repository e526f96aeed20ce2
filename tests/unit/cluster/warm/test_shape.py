"""What a pod takes of a node, as the scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest

from scaler.cluster.warm.shape import WarmError, shape_of

Json = dict[str, Any]


def container(limits: Json | None = None, **requests: Any) -> Json:
    return {"name": "c", "resources": {"requests": requests, "limits": limits or {}}}


GPU = {"nvidia.com/gpu": 2}

CASES: dict[str, tuple[Json, dict[str, str]]] = {
    "one container": (
        {"containers": [container(cpu="500m", memory="1Gi")]},
        {"cpu": "500m", "memory": "1073741824"},
    ),
    "GPUs among the limits alone": (
        {"containers": [container(GPU, cpu=4)]},
        {"cpu": "4", "nvidia.com/gpu": "2"},
    ),
    "a request beside a limit": (
        {"containers": [container({"cpu": "8"}, cpu="1500m")]},
        {"cpu": "1500m"},
    ),
    "containers together": (
        {"containers": [container(GPU, cpu="1"), container(cpu="250m")]},
        {"cpu": "1250m", "nvidia.com/gpu": "2"},
    ),
    "a hungry init container": (
        {"containers": [container(cpu="1")], "initContainers": [container(cpu="3"), container(cpu="2")]},
        {"cpu": "3"},
    ),
    "a sidecar stays": (
        {"containers": [container(cpu="1")], "initContainers": [container(cpu="3") | {"restartPolicy": "Always"}]},
        {"cpu": "4"},
    ),
    "the pod as a whole": (
        {"containers": [container(GPU)], "resources": {"requests": {"cpu": "6"}}},
        {"nvidia.com/gpu": "2", "cpu": "6"},
    ),
}


@pytest.mark.parametrize(("spec", "requests"), CASES.values(), ids=CASES)
def test_requests_are_those_of_the_scheduler(spec: Json, requests: dict[str, str]) -> None:
    assert dict(shape_of(spec).requests) == requests


def test_what_cannot_be_overcommitted_is_limited_too() -> None:
    shape = shape_of({"containers": [container({**GPU, "hugepages-2Mi": "4Mi"}, cpu="1")]})
    assert shape.resources["limits"] == {"nvidia.com/gpu": "2", "hugepages-2Mi": "4194304"}
    assert shape.resources["requests"] == {"cpu": "1", **shape.resources["limits"]}


def test_it_goes_where_the_pod_goes() -> None:
    placement = {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    }
    spec = {"containers": [container(cpu=1)], **placement, "volumes": [{"name": "weights"}], "nodeName": "node-0"}
    assert shape_of(spec).placement == placement


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"containers": [{"name": "vllm"}]}, "set resources.requests"),
        ({"containers": [container(cpu=0)]}, "set resources.requests"),
        ({"containers": [container(cpu=1)], "resourceClaims": [{"name": "gpu"}]}, "resourceClaims"),
    ],
)
def test_a_pod_for_which_no_place_can_be_kept_is_told(spec: Json, told: str) -> None:
    with pytest.raises(WarmError, match=told):
        shape_of(spec)
