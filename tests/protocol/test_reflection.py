"""A dry run with grpcurl, as the README shows it: no proto files at hand, the server says what it offers."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import pytest

from scaler.serving.host import Host
from tests.cluster import toolchain
from tests.protocol.world import POLICY, Fleet

pytestmark = pytest.mark.toolchain

REF = {"namespace": "serving", "name": "llama", "scalerMetadata": POLICY}


async def _grpcurl(host: Host, *words: str, data: dict[str, Any] | None = None) -> str:
    given = ["-d", json.dumps(data)] if data is not None else []
    command = [str(toolchain.binary("grpcurl")), "-plaintext", *given, str(host.grpc_address), *words]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_all_services_are_listed(host: Host) -> None:
    assert set((await _grpcurl(host, "list")).split()) == {
        "externalscaler.ExternalScaler",
        "vllmscaler.v1.Insight",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }


async def test_every_call_of_keda_can_be_made_by_hand(fleet: Fleet, host: Host) -> None:
    fleet.waiting = 35
    service = "externalscaler.ExternalScaler"
    spec = json.loads(await _grpcurl(host, f"{service}/GetMetricSpec", data=REF))["metricSpecs"][0]
    assert (spec["targetSize"], spec["targetSizeFloat"]) == ("1", 1)
    request = {"scaledObjectRef": REF, "metricName": spec["metricName"]}
    answer = json.loads(await _grpcurl(host, f"{service}/GetMetrics", data=request))
    (value,) = answer["metricValues"]
    assert (value["metricValue"], value["metricValueFloat"]) == ("4", 4)
    assert json.loads(await _grpcurl(host, f"{service}/IsActive", data=REF)) == {"result": True}


async def test_explain_and_health_can_be_asked_by_hand(fleet: Fleet, host: Host) -> None:
    await _grpcurl(host, "externalscaler.ExternalScaler/IsActive", data=REF)
    ref = {"namespace": "serving", "name": "llama"}
    told = json.loads(await _grpcurl(host, "vllmscaler.v1.Insight/Explain", data=ref))
    assert "serving/llama" in told["story"]
    assert json.loads(await _grpcurl(host, "grpc.health.v1.Health/Check")) == {"status": "SERVING"}
