"""Hundreds of ScaledObjects and thousands of pods: seen by a few watches, and never listed again."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter

import pytest

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.resources import DEPLOYMENTS, HPAS, PODS, SCALED_OBJECTS
from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane
from tests.cluster.workload_objects import hpa, pod_status, scaled_object, target

pytestmark = pytest.mark.toolchain

NAMESPACES = 4
SCALED_OBJECTS_EACH = 125
PODS_EACH = 4
TICKS = 10
WATCHED = ("scaledobjects", "pods", "deployments", "horizontalpodautoscalers")

_REQUESTS = re.compile(r'apiserver_request_total\{.*?resource="(\w+)".*?verb="(\w+)".*?\} (\d+)')


def requests(plane: ControlPlane, verb: str) -> Counter[str]:
    """How often the API server was asked, by resource."""
    counted: Counter[str] = Counter()
    for resource, asked, count in _REQUESTS.findall(plane.api.get("/metrics").text):
        if asked == verb and resource in WATCHED:
            counted[resource] += int(count)
    return counted


async def fill(client: ApiClient, plane: ControlPlane) -> None:
    """500 Deployments with their pods, ScaledObjects and HPAs."""
    slots = asyncio.Semaphore(32)

    async def one(namespace: str, name: str) -> None:
        async with slots:
            labels = {"app": name, "app.kubernetes.io/name": "vllm", "pod-template-hash": "5d78c9869d"}
            await client.create(DEPLOYMENTS, namespace, target("Deployment", name, PODS_EACH))
            await client.create(HPAS, namespace, hpa(name))
            for i in range(PODS_EACH):
                containers = [{"name": "vllm", "image": "vllm", "ports": [{"name": "http", "containerPort": 8000}]}]
                pod: Json = {"metadata": {"name": f"{name}-{i}", "labels": labels}, "spec": {"containers": containers}}
                await client.create(PODS, namespace, pod)
                await client.patch(PODS, namespace, f"{name}-{i}", {"status": pod_status(ready=True)}, "status")
            await client.create(SCALED_OBJECTS, namespace, scaled_object(name))

    namespaces = [plane.create_namespace() for _ in range(NAMESPACES)]
    await asyncio.gather(*(one(namespace, f"llm-{i}") for namespace in namespaces for i in range(SCALED_OBJECTS_EACH)))


async def test_hundreds_of_targets_need_a_few_watches_and_no_list_per_tick(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ControlPlane() as plane:
        plane.apply_crds(toolchain.module_dir("keda") / "config" / "crd" / "bases")
        async with await ApiClient.connect(plane.kubeconfig) as client:
            await fill(client, plane)
        lists, watches = requests(plane, "LIST"), requests(plane, "WATCH")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.cluster.watching", plane.kubeconfig, str(TICKS), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        seen = json.loads(output)
        with capsys.disabled():
            print(f"\n{seen}")

        assert process.returncode == 0
        assert seen["scaled_objects"] == NAMESPACES * SCALED_OBJECTS_EACH
        assert seen["pods"] == NAMESPACES * SCALED_OBJECTS_EACH * PODS_EACH
        # One page of 500 objects each, whatever the number of ticks.
        listed = requests(plane, "LIST") - lists
        assert listed == {
            "scaledobjects": 1,
            "pods": NAMESPACES,
            "deployments": NAMESPACES,
            "horizontalpodautoscalers": 4,
        }
        assert (requests(plane, "WATCH") - watches).total() <= 2 * (1 + 3 * NAMESPACES)
