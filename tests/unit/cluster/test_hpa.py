from __future__ import annotations

from typing import Any

import pytest

from scaler.cluster.hpa import Hpa, hpa_warnings, parse_hpa
from scaler.cluster.scaled_objects import parse_scaled_object
from tests.unit.cluster.objects import Json, hpa, metadata, scaled_object


def parsed(item: Json) -> Hpa:
    found = parse_hpa(item)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("more", "name", "belongs_to"),
    [
        ({"ownerReferences": [{"kind": "ScaledObject", "name": "llama"}]}, "custom", "llama"),
        ({"labels": {"scaledobject.keda.sh/name": "llama"}}, "custom", "llama"),
        ({}, "keda-hpa-llama", "llama"),
        ({}, "somebody-elses", None),
        ({"ownerReferences": [{"kind": "Other", "name": "x"}]}, "somebody-elses", None),
    ],
)
def test_hpa_belongs_to_the_scaled_object_that_made_it(more: Json, name: str, belongs_to: str | None) -> None:
    found = parse_hpa({"metadata": metadata(name, **more), "spec": {"maxReplicas": 3}})
    assert (found.scaled_object if found else None) == belongs_to


def test_tolerance_that_is_absent_is_unknown_and_not_zero() -> None:
    found = parsed(hpa("llama", scaleUp={"tolerance": "0"}, scaleDown={"stabilizationWindowSeconds": 60}))
    assert (found.tolerance_up, found.tolerance_down) == (0.0, None)


def warnings(served: Json, **spec: Any) -> list[str]:
    wanted = parse_scaled_object(scaled_object("llama", **spec), lambda _: True)
    assert wanted is not None
    return hpa_warnings(wanted, parsed(served))


def asking(up: str, down: str | None = None) -> Json:
    behavior = {"scaleUp": {"tolerance": up}, "scaleDown": {"tolerance": down} if down else {}}
    return {"horizontalPodAutoscalerConfig": {"behavior": behavior}}


def test_dropped_tolerance_is_told_with_the_reason() -> None:
    (line,) = warnings(hpa("llama"), advanced=asking("0"))
    assert line.startswith("HPA keda-hpa-llama carries no scaleUp tolerance though the ScaledObject asks for 0")
    assert "HPAConfigurableTolerance" in line


def test_hpa_that_is_behind_is_told() -> None:
    served = hpa("llama", maximum=8, scaleUp={"tolerance": "0"}, scaleDown={"tolerance": "100m"})
    lines = warnings(served, advanced=asking("0", "0"), minReplicaCount=2, maxReplicaCount=12)
    assert [line.split(":")[0] for line in lines] == [
        "HPA keda-hpa-llama carries a scaleDown tolerance of 0.1 where the ScaledObject asks for 0",
        "HPA keda-hpa-llama has a minimum of 1 replicas where the ScaledObject asks for 2",
        "HPA keda-hpa-llama has a maximum of 8 replicas where the ScaledObject asks for 12",
    ]


def test_hpa_that_scales_by_cpu_instead_of_asking_is_told_with_the_way_out() -> None:
    served = hpa("llama")
    served["spec"]["metrics"] = [{"type": "Resource", "resource": {"name": "cpu"}}]
    (line,) = warnings(served)
    assert line.startswith("HPA keda-hpa-llama asks for no external metric")
    assert "delete the HPA" in line


def test_hpa_that_is_as_asked_needs_no_words() -> None:
    assert warnings(hpa("llama", scaleUp={"tolerance": "0"}), advanced=asking("0")) == []
    assert warnings(hpa("llama")) == []
