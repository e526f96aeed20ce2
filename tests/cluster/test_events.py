"""Events as `kubectl describe` shows them."""

from __future__ import annotations

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.events import EventRecorder
from scaler.cluster.scaled_objects import parse_scaled_object
from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.workload_objects import scaled_object
from tests.waiting import background, until

pytestmark = pytest.mark.toolchain


async def test_repeated_event_is_one_line_with_a_count(api_server: ControlPlane, namespace: str) -> None:
    api_server.apply_crds(toolchain.module_dir("keda") / "config" / "crd" / "bases")
    api_server.apply(scaled_object("llama"), namespace=namespace)
    item = api_server.get(f"/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects/llama")
    assert item is not None
    about = parse_scaled_object(item, lambda _: True)
    assert about is not None

    def events() -> list[Manifest]:
        found = api_server.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        items: list[Manifest] = (found or {})["items"]
        return items

    async with await ApiClient.connect(api_server.kubeconfig) as client:
        recorder = EventRecorder(client, "vllm-scaler-0")
        async with background(recorder.run()):
            for _ in range(7):
                recorder.say(about, "InvalidTrigger", "targetOngoingRequests: 'x' is wrong", "Warning")
            await until(events, "the event")
            await recorder.flush()
    (event,) = events()
    assert event["series"]["count"] == 7
    described = api_server.kubectl("describe", "scaledobject", "llama", "-n", namespace)
    assert "InvalidTrigger" in described
    assert "(x7 over" in described
    assert "targetOngoingRequests: 'x' is wrong" in described
