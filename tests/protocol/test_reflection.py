"""A dry run with grpcurl, as the README shows it: no proto files at hand, the server says what it offers."""

from __future__ import annotations

import json

import pytest

from scaler.serving.host import Host
from tests.protocol.grpcurl import grpcurl
from tests.protocol.world import POLICY, Fleet

pytestmark = pytest.mark.toolchain

REF = {"namespace": "serving", "name": "llama", "scalerMetadata": POLICY}


async def test_all_services_are_listed(host: Host) -> None:
    assert set((await grpcurl(host.grpc_address, "list")).split()) == {
        "externalscaler.ExternalScaler",
        "vllmscaler.v1.Insight",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }


async def test_every_call_of_keda_can_be_made_by_hand(fleet: Fleet, host: Host) -> None:
    fleet.waiting = 35
    service = "externalscaler.ExternalScaler"
    spec = json.loads(await grpcurl(host.grpc_address, f"{service}/GetMetricSpec", data=REF))["metricSpecs"][0]
    assert (spec["targetSize"], spec["targetSizeFloat"]) == ("1", 1)
    request = {"scaledObjectRef": REF, "metricName": spec["metricName"]}
    answer = json.loads(await grpcurl(host.grpc_address, f"{service}/GetMetrics", data=request))
    (value,) = answer["metricValues"]
    assert (value["metricValue"], value["metricValueFloat"]) == ("4", 4)
    assert json.loads(await grpcurl(host.grpc_address, f"{service}/IsActive", data=REF)) == {"result": True}


async def test_explain_and_health_can_be_asked_by_hand(fleet: Fleet, host: Host) -> None:
    await grpcurl(host.grpc_address, "externalscaler.ExternalScaler/IsActive", data=REF)
    ref = {"namespace": "serving", "name": "llama"}
    told = json.loads(await grpcurl(host.grpc_address, "vllmscaler.v1.Insight/Explain", data=ref))
    assert "serving/llama" in told["story"]
    assert json.loads(await grpcurl(host.grpc_address, "grpc.health.v1.Health/Check")) == {"status": "SERVING"}
