from __future__ import annotations

import pytest

from scaler.cluster.model import ScaledObject
from scaler.cluster.scaled_objects import OwnAddresses, parse_scaled_object
from tests.unit.cluster.objects import Json, scaled_object

OURS = OwnAddresses(["vllm-scaler.keda.svc:9090"])


def parsed(item: Json) -> ScaledObject:
    found = parse_scaled_object(item, OURS)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("own", "address", "ours"),
    [
        ("vllm-scaler.keda.svc:9090", "vllm-scaler.keda.svc:9090", True),
        ("vllm-scaler.keda.svc:9090", "vllm-scaler.keda:9090", True),
        ("vllm-scaler.keda:9090", "vllm-scaler.keda.svc.cluster.local:9090", True),
        ("vllm-scaler.keda.svc:9090", "VLLM-Scaler.keda.svc.cluster.local.:9090", True),
        ("vllm-scaler.keda.svc:9090", "dns:///vllm-scaler.keda.svc:9090", True),
        ("vllm-scaler.keda.svc:9090", "passthrough:///vllm-scaler.keda.svc:9090", True),
        ("vllm-scaler.keda.svc:9090", "vllm-scaler.keda.svc:9091", True),
        ("vllm-scaler.keda.svc:9090", "vllm-scaler.keda", True),
        ("vllm-scaler.keda.svc", "vllm-scaler.keda.svc:9091", True),
        ("vllm-scaler.keda.svc:9090", "vllm-scaler.other.svc:9090", False),
        ("vllm-scaler.keda.svc:9090", "other.keda.svc:9090", False),
        ("vllm-scaler.keda.svc:9090", "vllm-scaler:9090", False),
        ("scaler.example.com:443", "scaler.example.com:443", True),
        ("scaler.example.com:443", "scaler.example.com:444", False),
        ("127.0.0.1:9090", "127.0.0.1:9090", True),
        ("127.0.0.1:9090", "127.0.0.1:9091", False),
        ("[::1]:9090", "[::1]:9090", True),
        ("[::1]:9090", "[::2]:9090", False),
        ("::1", "[::1]:9090", True),
        ("vllm-scaler.keda.svc:9090", "", False),
    ],
)
def test_trigger_is_ours_by_its_address(own: str, address: str, ours: bool) -> None:
    assert OwnAddresses([own])({"scalerAddress": address}) is ours


def test_trigger_without_an_address_is_not_ours() -> None:
    assert not OURS({})


def test_defaults_are_kedas() -> None:
    found = parsed(scaled_object("llama"))
    assert (found.api_version, found.kind, found.target) == ("apps/v1", "Deployment", "llama")
    assert (found.minimum, found.maximum, found.polling_s, found.cooldown_s) == (0, 100, 30, 300)
    assert (found.paused, found.tolerance_up, found.tolerance_down) == (False, None, None)


def test_what_is_said_is_taken() -> None:
    behavior = {"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "50m"}}
    found = parsed(
        scaled_object(
            "llama",
            target={"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "group"},
            minReplicaCount=2,
            maxReplicaCount=24,
            pollingInterval=5,
            cooldownPeriod=900,
            advanced={"horizontalPodAutoscalerConfig": {"behavior": behavior}},
        )
    )
    assert (found.api_version, found.kind, found.target) == ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "group")
    assert (found.minimum, found.maximum, found.polling_s, found.cooldown_s) == (2, 24, 5, 900)
    assert (found.tolerance_up, found.tolerance_down) == (0.0, 0.05)


def test_only_triggers_that_name_this_scaler_are_kept_with_their_place() -> None:
    address = {"scalerAddress": "vllm-scaler.keda.svc:9090"}
    found = parsed(
        scaled_object(
            "llama",
            triggers=[
                {"type": "cpu", "metadata": {"value": "60"}},
                {"type": "external", "metadata": {"scalerAddress": "other:1"}},
                {"type": "external-push", "metadata": {**address, "policy": "pulse"}},
            ],
        )
    )
    assert [(trigger.index, trigger.type) for trigger in found.triggers] == [(2, "external-push")]
    assert found.triggers[0].metadata == {**address, "policy": "pulse"}


def test_scaled_object_of_another_external_scaler_is_kept_without_triggers() -> None:
    assert parsed(scaled_object("llama", address="other.keda.svc:9090")).triggers == ()


def test_scaled_object_without_external_triggers_is_of_no_interest() -> None:
    assert parse_scaled_object(scaled_object("llama", triggers=[{"type": "cpu"}]), OURS) is None


@pytest.mark.parametrize(
    ("annotations", "paused"),
    [
        ({}, False),
        ({"paused": "true"}, True),
        ({"paused": "false"}, False),
        ({"paused": "F"}, False),
        ({"paused": "0"}, False),
        ({"paused": "yes, please"}, True),
        ({"paused": ""}, True),
        ({"paused-replicas": "3"}, True),
        ({"paused": "false", "paused-replicas": "0"}, True),
        ({"paused-scale-in": "true"}, False),
    ],
)
def test_pause_annotations_mean_what_they_mean_to_keda(annotations: dict[str, str], paused: bool) -> None:
    item = scaled_object("llama", annotations={f"autoscaling.keda.sh/{key}": v for key, v in annotations.items()})
    assert parsed(item).paused is paused
