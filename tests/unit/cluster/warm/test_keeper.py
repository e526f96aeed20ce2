"""Room on nodes before an API server that fails on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.events import EventRecorder
from scaler.cluster.model import DiscoveryError, Phase, Pod, ScaledObject, Workload
from scaler.cluster.resources import (
    CAPACITY_BUFFERS,
    DEPLOYMENTS,
    EVENTS,
    POD_TEMPLATES,
    PODS,
    RAY_CLUSTERS,
    RAY_SERVICES,
    RAY_WORKER_GROUPS,
    Resource,
)
from scaler.cluster.scaled_objects import parse_scaled_object
from scaler.cluster.warm import keeper, ways
from scaler.cluster.warm.keeper import WarmKeeper
from scaler.cluster.warm.objects import Placeholders, name_of
from scaler.cluster.warm.ways import Way
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.objects import metadata, pod, scaled_object
from tests.unit.cluster.ray.world import cluster_json, group_json, service_json, worker_group_json
from tests.waiting import background, until

Json = dict[str, Any]

SERVED = "/apis/autoscaling.x-k8s.io/v1beta1"
SPEC: Json = {
    "nodeSelector": {"pool": "gpu"},
    "containers": [{"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": 4}}}],
}
LLAMA: tuple[str, str] = ("serving", "llama")
GROUPS = Resource("test.example.com", "v1", "modelgroups")


class Scene:
    """A keeper at work on a fake cluster, for the ScaledObject `llama`."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.leads = True
        self.wishes: dict[tuple[str, str], int] = {LLAMA: 0}
        self.pods: tuple[Pod, ...] = ()
        self.keeper: WarmKeeper

    def workload(self, namespace: str, name: str) -> Workload:
        """The one that discovery would have."""
        if (namespace, name) != LLAMA:
            raise DiscoveryError(f"there is no {namespace}/{name}")
        return Workload(1, 1, self.pods, 1, 10)

    def made(self, resource: Resource) -> Json | None:
        found = [item for item in self.api.items(resource) if item["metadata"]["name"] == "llama-warm"]
        return found[0] if found else None

    def buffer(self) -> int | None:
        made = self.made(CAPACITY_BUFFERS)
        return None if made is None else int(made["spec"]["replicas"])

    def placeholders(self) -> int | None:
        made = self.made(DEPLOYMENTS)
        return None if made is None else int(made["spec"]["replicas"])

    def trouble(self) -> str:
        return self.keeper.room(*LLAMA)[1]

    async def wants(self, replicas: int) -> None:
        self.wishes[LLAMA] = replicas

    async def buffer_is(self, **conditions: tuple[str, str]) -> None:
        """Say what an autoscaler thinks of the buffer."""
        item = self.api.item(CAPACITY_BUFFERS, "serving", "llama-warm")
        told = [
            {"type": kind, "status": status, "reason": reason, "message": "so it is"}
            for kind, (status, reason) in conditions.items()
        ]
        status = {"conditions": told, "replicas": item["spec"]["replicas"]}
        await self.api.put(CAPACITY_BUFFERS, {**item, "status": status})


def parsed(item: Json) -> ScaledObject:
    found = parse_scaled_object(item, lambda _: True)
    assert found is not None
    return found


def template(**spec: Any) -> Json:
    return {"metadata": metadata("llama"), "spec": {"template": {"spec": SPEC}, **spec}}


@asynccontextmanager
async def at_work(
    api: FakeApi, client: ApiClient, way: Way = Way.AUTO, target: Mapping[str, str] | None = None
) -> AsyncIterator[Scene]:
    scene = Scene(api)
    events = EventRecorder(client, "vllm-scaler-0")
    scene.keeper = WarmKeeper(
        client, scene, events, lambda: scene.wishes, lambda: scene.leads, way, Placeholders("low", "pause")
    )
    scene.keeper.show([parsed(scaled_object("llama", target={"name": "llama", **(target or {})}))])
    async with background(events.run()), background(scene.keeper.run()):
        yield scene


@pytest.fixture(autouse=True)
async def quick(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """No long pauses; a cluster with CapacityBuffers and a Deployment."""
    for pause in ("_LOOK_S", "_AGAIN_S", "_ASK_S"):
        monkeypatch.setattr(keeper, pause, 0.02)
    monkeypatch.setattr(ways, "_ACTED_ON_S", 10**10)  # what is made here was made long ago
    api.groups[SERVED] = [{"name": "capacitybuffers", "kind": "CapacityBuffer"}]
    await api.put(DEPLOYMENTS, template())


async def test_a_buffer_is_made_resized_and_taken_away(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client) as scene:
        await scene.wants(2)
        await until(lambda: scene.buffer() == 2, "a buffer")
        made = scene.made(POD_TEMPLATES)
        assert made is not None
        (placeholder,) = made["template"]["spec"]["containers"]
        assert placeholder["resources"] == {
            "requests": {"cpu": "4", "nvidia.com/gpu": "1"},
            "limits": {"nvidia.com/gpu": "1"},
        }
        assert made["template"]["spec"]["nodeSelector"] == {"pool": "gpu"}
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("ScaledObject", "llama", "uid-llama")
        assert scene.made(DEPLOYMENTS) is None

        await scene.wants(3)
        await until(lambda: scene.buffer() == 3, "a larger one")
        await scene.wants(0)
        await until(lambda: scene.buffer() is None and scene.made(POD_TEMPLATES) is None, "none")
        await until(lambda: len(api.items(EVENTS)) == 2, "the events")
        assert "room on nodes for 2 more replicas is asked for by a CapacityBuffer" in api.items(EVENTS)[0]["note"]


async def test_without_the_definition_placeholder_pods_take_its_place(api: FakeApi, client: ApiClient) -> None:
    del api.groups[SERVED]
    async with at_work(api, client) as scene:
        await scene.wants(1)
        await until(lambda: scene.placeholders() == 1, "a placeholder")
        made = scene.made(DEPLOYMENTS)
        assert made is not None
        pod_spec = made["spec"]["template"]["spec"]
        assert pod_spec["priorityClassName"] == "low"
        assert pod_spec["nodeSelector"] == {"pool": "gpu"}
        assert pod_spec["terminationGracePeriodSeconds"] == 0
        assert made["spec"]["template"]["metadata"]["labels"] == made["spec"]["selector"]["matchLabels"]

        api.groups[SERVED] = []  # it is installed
        await until(lambda: scene.buffer() == 1 and scene.placeholders() is None, "a buffer instead")


async def test_what_the_pods_need_is_followed(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client) as scene:
        await scene.wants(1)
        await until(lambda: scene.buffer() == 1, "a buffer")
        await api.put(DEPLOYMENTS, template(template={"spec": {**SPEC, "nodeSelector": {"pool": "new"}}}))

        def selector() -> Json:
            selected: Json = (scene.made(POD_TEMPLATES) or {})["template"]["spec"]["nodeSelector"]
            return selected

        await until(lambda: selector() == {"pool": "new"}, "the new pool")


async def test_room_is_there_when_the_autoscaler_says_so(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client) as scene:
        await scene.wants(2)
        await until(lambda: scene.buffer() == 2, "a buffer")
        assert scene.keeper.room(*LLAMA) == (0, "")
        good = ("True", "Resolved")
        await scene.buffer_is(ReadyForProvisioning=good, Provisioning=("True", "FitsExistingCapacity"))
        await until(lambda: scene.keeper.room(*LLAMA) == (2, ""), "room")
        await scene.buffer_is(ReadyForProvisioning=good, Provisioning=("False", "RequiresNewCapacity"))
        await until(lambda: scene.keeper.room(*LLAMA) == (0, ""), "no room yet")
        await scene.buffer_is(ReadyForProvisioning=("False", "PodTemplateNotFound"))
        await until(lambda: "is not ready for provisioning: PodTemplateNotFound" in scene.trouble(), "what is wrong")


async def test_a_buffer_that_nobody_acts_on_is_told(
    api: FakeApi, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(api, client) as scene:
        await scene.wants(1)
        await until(lambda: scene.buffer() == 1, "a buffer")
        assert scene.trouble() == ""
        monkeypatch.setattr(ways, "_ACTED_ON_S", 0.0)
        await until(lambda: "no autoscaler acts on CapacityBuffer llama-warm" in scene.trouble(), "what is wrong")
        await scene.buffer_is(Provisioning=("True", "FakePodsInjected"))
        await until(lambda: scene.trouble() == "", "an autoscaler that acts")


async def test_what_was_found_stands_while_it_is_looked_at_again(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client) as scene:
        await scene.wants(1)
        await until(lambda: scene.buffer() == 1, "a buffer")
        await scene.buffer_is(Provisioning=("True", "FitsExistingCapacity"))
        await until(lambda: scene.keeper.room(*LLAMA) == (1, ""), "room")
        looks = api.requests["patch", "capacitybuffers"]
        rooms = set()

        def looked_again() -> bool:
            rooms.add(scene.keeper.room(*LLAMA))
            return api.requests["patch", "capacitybuffers"] > looks + 3

        await until(looked_again, "more looks")
        assert rooms == {(1, "")}


async def test_placeholders_that_are_refused_are_told(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client, Way.PLACEHOLDERS) as scene:
        await scene.wants(1)
        await until(lambda: scene.placeholders() == 1, "a placeholder")
        item = api.item(DEPLOYMENTS, "serving", "llama-warm")
        refused = {"type": "ReplicaFailure", "status": "True", "message": "no PriorityClass with name low was found"}
        await api.put(DEPLOYMENTS, {**item, "status": {"conditions": [refused]}})
        await until(lambda: "refused: no PriorityClass with name low was found" in scene.trouble(), "what is wrong")


@pytest.mark.parametrize(
    ("forbidden", "told"),
    [
        (("patch", "podtemplates"), "may not patch podtemplates llama-warm in namespace serving"),
        (("patch", "capacitybuffers"), "may not patch capacitybuffers.autoscaling.x-k8s.io llama-warm"),
        (("get", "deployments"), "may not get deployments.apps llama"),
    ],
)
async def test_a_missing_right_is_told_in_one_line_and_tried_again(
    api: FakeApi, client: ApiClient, forbidden: tuple[str, str], told: str
) -> None:
    api.forbidden.add(forbidden)
    async with at_work(api, client) as scene:
        await scene.wants(1)
        await until(lambda: told in scene.trouble(), "what is missing")
        assert "\n" not in scene.trouble()
        api.forbidden.clear()
        await until(lambda: scene.buffer() == 1 and scene.trouble() == "", "a buffer")


async def test_a_target_without_requests_keeps_no_other_from_its_room(api: FakeApi, client: ApiClient) -> None:
    await api.put(DEPLOYMENTS, template(template={"spec": {"containers": [{"name": "vllm"}]}}))
    async with at_work(api, client) as scene:
        await scene.wants(1)
        await until(lambda: "no room can be made for Deployment serving/llama" in scene.trouble(), "what is wrong")
        assert "set resources.requests" in scene.trouble()


async def test_only_the_leader_acts_and_a_new_one_clears_what_is_not_wanted(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client) as before:
        await before.wants(1)
        await until(lambda: before.buffer() == 1, "a buffer")
    async with at_work(api, client) as scene:
        scene.leads = False
        await scene.wants(2)
        await until(lambda: scene.keeper.room(*LLAMA) == (0, ""), "nothing known")
        assert scene.buffer() == 1
        await scene.wants(0)
        scene.leads = True
        await until(lambda: scene.buffer() is None, "none")


async def test_while_keda_is_paused_no_room_is_kept(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client) as scene:
        await scene.wants(1)
        await until(lambda: scene.buffer() == 1, "a buffer")
        scene.keeper.show([parsed(scaled_object("llama", annotations={"autoscaling.keda.sh/paused": "true"}))])
        await until(lambda: scene.buffer() is None, "none")
        scene.keeper.show([parsed(scaled_object("llama"))])
        await until(lambda: scene.buffer() == 1, "a buffer again")


async def test_what_is_wanted_is_unknown_before_the_first_decision(api: FakeApi, client: ApiClient) -> None:
    async with at_work(api, client) as before:
        await before.wants(1)
        await until(lambda: before.buffer() == 1, "a buffer")
    async with at_work(api, client) as scene:
        lists = api.requests["list", "podtemplates"]
        del scene.wishes[LLAMA]
        await until(lambda: api.requests["list", "podtemplates"] > lists, "a look at what is there")
        await scene.api.put(PODS)  # a turn for the keeper
        assert scene.buffer() == 1
        scene.keeper.show([])
        await until(lambda: scene.buffer() is None, "none for a ScaledObject that names this scaler no more")


async def test_a_right_for_nothing_but_the_chosen_way_is_needed(api: FakeApi, client: ApiClient) -> None:
    api.forbidden |= {(verb, "deployments") for verb in ("patch", "delete", "create")}
    async with at_work(api, client, Way.BUFFER) as scene:
        await scene.wants(1)
        await until(lambda: scene.buffer() == 1, "a buffer")
        await scene.wants(0)
        await until(lambda: scene.buffer() is None, "none")


RAY_TARGET = {"apiVersion": "vllm-scaler.dev/v1alpha1", "kind": "RayWorkerGroup"}


@pytest.mark.parametrize("kind", ["RayCluster", "RayService"])
async def test_a_replica_of_several_hosts_takes_a_place_for_each(api: FakeApi, client: ApiClient, kind: str) -> None:
    group = group_json(hosts=2, template={"spec": SPEC})
    await api.put(RAY_WORKER_GROUPS, worker_group_json(kind=kind))
    await api.put(RAY_CLUSTERS, cluster_json("llama", group))
    await api.put(RAY_SERVICES, service_json("llama", group))
    async with at_work(api, client, target=RAY_TARGET) as scene:
        await scene.wants(2)
        await until(lambda: scene.buffer() == 4, "a buffer for two replicas")
        await scene.buffer_is(Provisioning=("True", "FitsExistingCapacity"))
        await until(lambda: scene.keeper.room(*LLAMA) == (2, ""), "room")


async def test_a_leader_worker_set_takes_a_place_for_each_worker(api: FakeApi, client: ApiClient) -> None:
    sets = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")
    api.groups["/apis/leaderworkerset.x-k8s.io/v1"] = [
        {"name": "leaderworkersets", "kind": "LeaderWorkerSet"},
        {"name": "leaderworkersets/scale", "kind": "Scale"},
    ]
    spec = {"leaderWorkerTemplate": {"size": 3, "workerTemplate": {"spec": SPEC}}}
    await api.put(sets, {"metadata": metadata("llama"), "spec": spec})
    target = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    async with at_work(api, client, target=target) as scene:
        await scene.wants(1)
        await until(lambda: scene.buffer() == 3, "a buffer for one replica")


async def test_a_kind_without_a_template_is_known_by_its_pods(api: FakeApi, client: ApiClient) -> None:
    api.groups["/apis/test.example.com/v1"] = [
        {"name": "modelgroups", "kind": "ModelGroup"},
        {"name": "modelgroups/scale", "kind": "Scale"},
    ]
    await api.put(GROUPS, {"metadata": metadata("llama"), "spec": {"replicas": 1}})
    async with at_work(api, client, target={"apiVersion": "test.example.com/v1", "kind": "ModelGroup"}) as scene:
        await scene.wants(1)
        await until(lambda: "no pod to learn from yet" in scene.trouble(), "what is missing")
        await api.put(PODS, {**pod("llama-0"), "spec": SPEC})
        scene.pods = (Pod("llama-0", "uid", Phase.READY, 0.0, 0.0),)
        await until(lambda: scene.buffer() == 1, "a buffer")


def test_names_fit_into_a_label_and_differ() -> None:
    assert name_of("llama") == "llama-warm"
    long = [name_of("m" * 100 + end) for end in "ab"]
    assert long[0] != long[1]
    assert all(len(name) <= 63 for name in long)
