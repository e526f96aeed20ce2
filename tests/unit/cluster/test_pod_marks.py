"""Annotations on pods: only what differs is written, what others have set stays, and a refusal is said once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
from structlog.testing import capture_logs

from scaler.cluster.client import ApiClient
from scaler.cluster.model import Pod
from scaler.cluster.pod_marks import AUTOSCALER, DELETION_COST, KARPENTER, OURS, PodMarker, change
from scaler.cluster.pods import parse_pod
from scaler.cluster.resources import PODS
from tests.unit.cluster import objects
from tests.unit.cluster.fake_api import FakeApi
from tests.waiting import until

BUSY = {KARPENTER: "true", AUTOSCALER: "false"}
CHANGES: list[tuple[str, dict[str, str], dict[str, str], dict[str, str | None]]] = [
    ("nothing to say", {}, {}, {}),
    ("a first mark", {}, {DELETION_COST: "3"}, {DELETION_COST: "3", OURS: DELETION_COST}),
    ("another value", {DELETION_COST: "3", OURS: DELETION_COST}, {DELETION_COST: "4"}, {DELETION_COST: "4"}),
    ("as it is", {DELETION_COST: "3", OURS: DELETION_COST}, {DELETION_COST: "3"}, {}),
    ("taken back", {DELETION_COST: "3", OURS: DELETION_COST}, {}, {DELETION_COST: None, OURS: None}),
    (
        "one of two taken back",
        {DELETION_COST: "3", **BUSY, OURS: f"{AUTOSCALER},{DELETION_COST},{KARPENTER}"},
        BUSY,
        {DELETION_COST: None, OURS: f"{AUTOSCALER},{KARPENTER}"},
    ),
    ("somebody else's stays", {DELETION_COST: "-7"}, {DELETION_COST: "3"}, {}),
    ("somebody else's stays for good", {KARPENTER: "true"}, {}, {}),
    ("beside somebody else's", {KARPENTER: "true"}, BUSY, {AUTOSCALER: "false", OURS: AUTOSCALER}),
    ("ours was taken away by hand", {OURS: DELETION_COST}, {}, {OURS: None}),
]


@pytest.mark.parametrize(("present", "wanted", "changes"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_only_what_differs_is_written_and_only_what_is_ours(
    present: Mapping[str, str], wanted: Mapping[str, str], changes: Mapping[str, str | None]
) -> None:
    assert change(present, wanted) == changes


@pytest.fixture
async def marker(client: ApiClient) -> AsyncIterator[PodMarker]:
    marker = PodMarker(client)
    task = asyncio.create_task(marker.run())
    yield marker
    task.cancel()


def seen(api: FakeApi, name: str) -> Pod:
    """A pod as the watch shows it."""
    found = parse_pod(api.item(PODS, "serving", name), None)
    assert found is not None
    return found.pod


async def test_a_pod_carries_its_marks_and_loses_them(api: FakeApi, marker: PodMarker) -> None:
    await api.put(PODS, objects.ready_pod("a"))
    marker.mark("serving", seen(api, "a"), BUSY)
    await until(lambda: seen(api, "a").marks == {**BUSY, OURS: f"{AUTOSCALER},{KARPENTER}"}, "the marks")
    marker.mark("serving", seen(api, "a"), {})
    await until(lambda: not seen(api, "a").marks, "no marks")


async def test_the_same_mark_is_sent_once_however_often_it_is_asked_for(api: FakeApi, marker: PodMarker) -> None:
    await api.put(PODS, objects.ready_pod("a"))
    before = seen(api, "a")
    for _ in range(5):
        marker.mark("serving", before, BUSY)
    await until(lambda: bool(seen(api, "a").marks), "the marks")
    marker.mark("serving", before, BUSY)  # the watch is behind
    marker.mark("serving", seen(api, "a"), BUSY)
    assert api.requests["patch", "pods"] == 1


async def test_a_refusal_is_said_once_and_nothing_more_is_tried_for_a_while(api: FakeApi, marker: PodMarker) -> None:
    await api.put(PODS, *(objects.ready_pod(name) for name in "abc"))
    api.forbidden.add(("patch", "pods"))
    with capture_logs() as logs:
        marker.mark("serving", seen(api, "a"), BUSY)
        await until(lambda: "serving" in marker.errors, "the refusal")
        for name in "bc":
            marker.mark("serving", seen(api, name), BUSY)
    assert [entry["event"] for entry in logs] == ["pods are not marked"]
    assert 'resources: ["pods"], verbs: ["patch"]' in marker.errors["serving"]


async def test_a_pod_that_has_gone_is_no_trouble(api: FakeApi, marker: PodMarker) -> None:
    await api.put(PODS, objects.ready_pod("a"), objects.ready_pod("b"))
    gone = seen(api, "a")
    await api.delete(PODS, "serving", "a")
    marker.mark("serving", gone, BUSY)
    marker.mark("serving", seen(api, "b"), BUSY)
    await until(lambda: bool(seen(api, "b").marks), "the other pod's marks")
    assert marker.errors == {}


async def test_a_write_that_fails_for_another_reason_is_let_go_and_is_no_warning(
    api: FakeApi, marker: PodMarker
) -> None:
    await api.put(PODS, objects.ready_pod("a"), objects.ready_pod("b"))
    api.refuse["patch", "pods"] = [(500, {"message": "etcd is away"}, {})]
    with capture_logs() as logs:
        marker.mark("serving", seen(api, "a"), BUSY)
        marker.mark("serving", seen(api, "b"), BUSY)
        await until(lambda: bool(seen(api, "b").marks), "the other pod's marks")
    assert [(entry["event"], entry["pod"]) for entry in logs] == [("pod not marked", "a")]
    assert marker.errors == {}
