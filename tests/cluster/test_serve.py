"""`vllm-scaler serve` with a real API server: ScaledObjects found by watch, events, and replicas that share a lease."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Mapping

import aiohttp
import grpc
import pytest

from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.workloads import deployment
from tests.protocol.process import Process, served
from tests.protocol.world import until

pytestmark = pytest.mark.toolchain

ADDRESS = "vllm-scaler.keda:9090"


@pytest.fixture(scope="module")
def plane(api_server: ControlPlane) -> ControlPlane:
    """The shared API server, which knows what a ScaledObject is."""
    api_server.apply_crds(toolchain.module_dir("keda") / "config" / "crd" / "bases")
    return api_server


def scaled_object(name: str, metadata: Mapping[str, str]) -> Manifest:
    trigger = {"type": "external-push", "metadata": {"scalerAddress": ADDRESS, **metadata}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": {"name": name}, "minReplicaCount": 1, "maxReplicaCount": 7, "triggers": [trigger]},
    }


async def test_a_scaled_object_is_served_before_keda_asks(plane: ControlPlane, namespace: str) -> None:
    plane.apply(deployment("llama", replicas=2), scaled_object("llama", {}), namespace=namespace)
    options = ("--kubeconfig", str(plane.kubeconfig), "--namespaces", namespace, "--address", ADDRESS)
    async with served(*options) as process, grpc.aio.insecure_channel(process.grpc) as channel:
        insight = InsightStub(channel)

        async def decided() -> bool:
            (target,) = (await insight.ListTargets(pb.ListTargetsRequest(namespace=namespace))).targets or [None]
            return target is not None and target.replicas.maximum == 7 and target.replicas.requested == 2

        await until(decided, "a decision for a ScaledObject that nobody asked about")


async def test_an_invalid_trigger_is_an_event_on_its_scaled_object(plane: ControlPlane, namespace: str) -> None:
    plane.apply(deployment("llama"), scaled_object("llama", {"upscaleDelay": "soon"}), namespace=namespace)
    options = ("--kubeconfig", str(plane.kubeconfig), "--namespaces", namespace, "--address", ADDRESS)
    async with served(*options):

        async def told() -> bool:
            described = await asyncio.to_thread(
                plane.kubectl, "describe", "scaledobjects.keda.sh", "llama", "-n", namespace
            )
            return "InvalidTrigger" in described and "upscaleDelay: 'soon'" in described

        await until(told, "the problem in kubectl describe")


async def test_of_two_replicas_only_the_one_with_the_lease_is_ready_and_the_other_follows(plane: ControlPlane) -> None:
    lease = f"lease-{uuid.uuid4().hex[:8]}"
    options = ("--kubeconfig", str(plane.kubeconfig), "--leader-elect", "--lease-name", lease)
    async with served(*options) as first:
        await until(lambda: _ready(first), "the first leads")
        async with served(*options) as second:
            assert not await _ready(second)
            first.process.send_signal(signal.SIGTERM)
            assert await first.end() == 0
            await until(lambda: _ready(second), "the second takes over")


async def _ready(process: Process) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"http://{process.http}/readyz") as answer:
        return answer.status == 200
