"""The controller before an API server that fails on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.events import EventRecorder
from scaler.cluster.ray import bridge
from scaler.cluster.ray.bridge import RayBridge
from scaler.cluster.resources import EVENTS, PODS, RAY_CLUSTERS, RAY_SERVICES, RAY_WORKER_GROUPS
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.ray.world import (
    GROUP,
    Json,
    cluster_json,
    group_json,
    service_json,
    worker_group_json,
    worker_json,
)
from tests.waiting import background, until


class Scene:
    """The bridge at work on a fake cluster."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.leads = True
        self.load: dict[str, float] = {}

    def group(self, cluster: str = "llama") -> Json:
        found: Json = self.api.item(RAY_CLUSTERS, "serving", cluster)["spec"]["workerGroupSpecs"][0]
        return found

    def status(self, name: str = "llama") -> Json:
        found: Json = self.api.item(RAY_WORKER_GROUPS, "serving", name).get("status") or {}
        return found

    def condition(self, kind: str = "Ready") -> tuple[str, str, str]:
        for condition in self.status().get("conditions", ()):
            if condition["type"] == kind:
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    def reason(self) -> str:
        return self.condition()[1]

    async def ask(self, replicas: int | None, **more: Any) -> None:
        spec = {} if replicas is None else {"replicas": replicas}
        item = worker_group_json(**spec, **more)
        item["status"] = self.status() if self.api.items(RAY_WORKER_GROUPS) else {}
        await self.api.put(RAY_WORKER_GROUPS, item)

    async def put(self, replicas: int, *workers: str, **more: Any) -> None:
        """A RayCluster and its workers."""
        await self.api.put(RAY_CLUSTERS, cluster_json("llama", group_json(replicas=replicas, **more)))
        await self.api.put(PODS, *(worker_json(name) for name in workers))

    async def overwrite(self, replicas: int) -> None:
        """Somebody else sets the count."""
        item = self.api.item(RAY_CLUSTERS, "serving", "llama")
        spec = {"workerGroupSpecs": [{**item["spec"]["workerGroupSpecs"][0], "replicas": replicas}]}
        generation = item["metadata"]["generation"] + 1
        fields = {"f:spec": {"f:workerGroupSpecs": {}}}
        managed = [{"manager": "argocd", "time": "2026-01-31T12:00:00Z", "fieldsV1": fields}]
        metadata = {**item["metadata"], "generation": generation, "managedFields": managed}
        await self.api.put(RAY_CLUSTERS, {**item, "metadata": metadata, "spec": spec})

    async def has(self, reason: str) -> None:
        await until(lambda: self.reason() == reason, f"the reason {reason}")


@pytest.fixture
async def scene(api: FakeApi, client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    for pause in ("_RETRY_S", "_RACE_S", "_STANDBY_S"):
        monkeypatch.setattr(bridge, pause, 0.02)
    scene = Scene(api)
    events = EventRecorder(client, "vllm-scaler-0")

    def loads(namespace: str) -> Mapping[str, float]:
        return scene.load

    def leads() -> bool:
        return scene.leads

    async with background(events.run()), background(RayBridge(client, events, loads, leads).run()):
        yield scene


async def test_a_count_is_carried_and_told(scene: Scene) -> None:
    await scene.put(1, "a")
    await scene.ask(3)
    await until(lambda: scene.group()["replicas"] == 3, "the count")
    await until(lambda: scene.status().get("replicas") == 1, "the status")
    assert scene.condition() == ("True", "Carried", f"RayCluster llama is to have 3 replicas of group {GROUP}")
    assert scene.condition("Limited")[0] == "False"
    assert scene.status()["selector"] == f"ray.io/cluster=llama,ray.io/group={GROUP}"
    await until(lambda: scene.api.items(EVENTS), "an event")
    assert "1 → 3" in scene.api.items(EVENTS)[0]["note"]
    assert scene.api.items(EVENTS)[0]["regarding"]["kind"] == "RayWorkerGroup"


async def test_without_a_count_that_of_the_group_is_taken_over(scene: Scene) -> None:
    await scene.put(4, "a")
    await scene.ask(None)
    await scene.has("Carried")
    assert scene.api.item(RAY_WORKER_GROUPS, "serving", "llama")["spec"]["replicas"] == 4
    assert scene.group()["replicas"] == 4


async def test_the_idle_worker_goes_and_the_list_is_cleared_when_it_has_gone(scene: Scene) -> None:
    scene.load = {"a": 2.0, "b": 0.0}
    await scene.put(2, "a", "b")
    await scene.ask(1)
    await until(lambda: scene.group().get("scaleStrategy") == {"workersToDelete": ["b"]}, "the victim")
    assert scene.group()["replicas"] == 1
    await scene.api.delete(PODS, "serving", "b")
    await until(lambda: scene.group()["scaleStrategy"] == {"workersToDelete": []}, "a cleared list")


async def test_nothing_is_written_over_and_over(scene: Scene, api: FakeApi) -> None:
    await scene.put(1, "a")
    await scene.ask(2)
    await scene.has("Carried")
    await api.put(PODS, worker_json("b"))
    await until(lambda: scene.status()["readyReplicas"] == 2, "the second worker")
    patches = api.requests["patch", "rayclusters"], api.requests["patch", "rayworkergroups/status"]
    await scene.overwrite(2)  # a change that changes nothing
    await api.put(RAY_WORKER_GROUPS, worker_group_json("other", target="none"))
    await until(lambda: scene.status("other"), "a later status")
    assert patches == (api.requests["patch", "rayclusters"], api.requests["patch", "rayworkergroups/status"] - 1)


async def test_a_service_and_both_of_its_clusters_get_the_count(scene: Scene, api: FakeApi) -> None:
    for name in ("old", "new"):
        await api.put(RAY_CLUSTERS, cluster_json(name, group_json(replicas=1)))
    await api.put(RAY_SERVICES, service_json("chat", group_json(replicas=1), active="old", pending="new"))
    await scene.ask(3, kind="RayService", target="chat")
    await scene.has("Carried")
    service = api.item(RAY_SERVICES, "serving", "chat")
    assert service["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["replicas"] == 3
    assert (scene.group("old")["replicas"], scene.group("new")["replicas"]) == (3, 3)
    assert scene.status()["rayCluster"] == "old"


async def test_a_limit_is_kept_to_and_told(scene: Scene) -> None:
    await scene.put(1, "a", maxReplicas=2)
    await scene.ask(5)
    await until(lambda: scene.condition("Limited")[0] == "True", "the limit")
    assert "5 replicas are above maxReplicas 2" in scene.condition("Limited")[2]
    assert scene.group()["replicas"] == 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((403, {"message": 'User "x" cannot patch'}, {}), "x may not patch rayclusters.ray.io llama"),
        ((500, {"message": "etcd is away"}, {}), "500 etcd is away"),
    ],
)
async def test_a_refusal_is_told_and_tried_again(
    scene: Scene, api: FakeApi, answer: tuple[int, Json, dict[str, str]], told: str
) -> None:
    api.refuse["patch", "rayclusters"] = [answer] * 20
    await scene.put(1, "a")
    await scene.ask(2)
    await scene.has("Refused")
    assert told in scene.condition()[2]
    assert scene.status()["selector"]  # the pods are known all the same
    api.refuse.clear()
    await scene.has("Carried")
    assert scene.group()["replicas"] == 2


async def test_a_lost_race_is_no_news_but_ten_are(scene: Scene, api: FakeApi) -> None:
    lost = (422, {"message": "the server rejected our request"}, {})
    api.refuse["patch", "rayclusters"] = [lost] * 3
    await scene.put(1, "a")
    await scene.ask(2)
    await scene.has("Carried")
    assert all(event["type"] == "Normal" for event in api.items(EVENTS))
    api.refuse["patch", "rayclusters"] = [lost] * 100
    await scene.ask(3)
    await scene.has("Refused")


async def test_what_is_gone_leaves_no_selector_so_that_nobody_scales_it(scene: Scene, api: FakeApi) -> None:
    await scene.put(2, "a")
    await scene.ask(2)
    await scene.has("Carried")
    await api.delete(RAY_CLUSTERS, "serving", "llama")
    await scene.has("RayClusterNotFound")
    assert "selector" not in {key for key, value in scene.status().items() if value is not None}
    assert scene.status()["replicas"] == 0


async def test_another_writer_is_told_and_not_fought(scene: Scene, api: FakeApi) -> None:
    await scene.put(1, "a")
    await scene.ask(3)
    await scene.has("Carried")
    await scene.overwrite(2)
    await until(lambda: scene.group()["replicas"] == 3, "the first time it is put right")
    await until(lambda: any(event["reason"] == "OtherWriter" for event in api.items(EVENTS)), "an event")
    await scene.overwrite(1)
    await scene.has("OtherWriter")
    assert scene.condition()[2].startswith(
        f"argocd has set replicas of group {GROUP} of RayCluster llama to 1, 3 is asked for here: nothing is written "
        "for 60s"
    )
    await scene.ask(4)  # a new wish is no reason to fight either
    await until(lambda: "4 is asked for" in scene.condition()[2], "the new wish")
    assert scene.group()["replicas"] == 1


async def test_who_does_not_lead_writes_nothing_and_takes_over_later(scene: Scene, api: FakeApi) -> None:
    scene.leads = False
    await scene.put(1, "a")
    await until(lambda: api.requests["list", "rayworkergroups"], "a list")
    await scene.ask(2)
    await until(lambda: api.requests["watch", "rayworkergroups"], "a watch")
    assert api.requests["patch", "rayclusters"] == 0
    scene.leads = True
    await scene.has("Carried")
    assert scene.group()["replicas"] == 2


@pytest.mark.parametrize("plural", ["rayclusters", "pods"])
async def test_a_missing_right_is_told_as_the_rule_to_add(api: FakeApi, client: ApiClient, plural: str) -> None:
    api.forbidden |= {("list", plural)}
    scene = Scene(api)
    await scene.put(1, "a")
    await scene.ask(2)
    events = EventRecorder(client, "vllm-scaler-0")
    async with background(RayBridge(client, events, lambda _: {}, lambda: True).run()):
        await scene.has("NotSeen")
    assert f'resources: ["{plural}"], verbs: ["list"]' in scene.condition()[2]
    assert scene.group()["replicas"] == 1
