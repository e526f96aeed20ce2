"""One collection of a real API server behind a network that breaks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.reflector import Reflector, Timing
from scaler.cluster.resources import PODS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.proxy import Proxy
from tests.cluster.workload_objects import create_pod
from tests.waiting import background, until

pytestmark = pytest.mark.toolchain


def uid(item: Json, _before: str | None) -> str:
    return str(item["metadata"]["uid"])


async def test_watch_whose_network_swallows_everything_is_noticed_and_opened_anew(
    api_server: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    timing = Timing(watch_s=2.0, idle_grace_s=1.0, back_off_s=0.05)
    async with (
        Proxy(api_server, tmp_path / "kubeconfig") as proxy,
        await ApiClient.connect(proxy.kubeconfig) as client,
    ):
        pods = Reflector(client, PODS, uid, namespace=namespace, timing=timing)
        async with background(pods.run()):
            await until(lambda: time.monotonic() - pods.alive_until() < 0.1, "a watch that stands")
            create_pod(api_server, namespace, "before", {})
            await until(lambda: len(pods.items) == 1, "the pod before")
            proxy.swallows = True
            create_pod(api_server, namespace, "meanwhile", {})
            await until(lambda: "the watch was silent for 3s" in pods.error, "the silence")
            assert len(pods.items) == 1
            proxy.swallows = False
            await until(lambda: len(pods.items) == 2, "the pod that came meanwhile")
            create_pod(api_server, namespace, "after", {})
            await until(lambda: len(pods.items) == 3, "the pod after")
