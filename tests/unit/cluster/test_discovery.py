from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.discovery import KubernetesDiscovery
from scaler.cluster.model import DiscoveryError, Phase, Workload
from scaler.cluster.resources import DEPLOYMENTS, HPAS, NODES, PODS, SCALED_OBJECTS, Resource
from scaler.cluster.scaled_objects import OwnAddresses
from scaler.cluster.watches import NARROW
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.objects import condition, deployment, hpa, metadata, pod, ready_pod, scaled_object
from tests.waiting import background, until

OURS = OwnAddresses(["vllm-scaler.keda.svc:9090"])
GROUPS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")
GROUP_TARGET = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"}


@asynccontextmanager
async def running(discovery: KubernetesDiscovery) -> AsyncIterator[KubernetesDiscovery]:
    async with background(discovery.run()):
        await until(discovery.synced.is_set, "a discovery that has seen everything")
        yield discovery


@pytest.fixture
async def llama(api: FakeApi) -> None:
    """A Deployment of two ready pods, served by this scaler."""
    await api.put(DEPLOYMENTS, deployment("llama", replicas=2))
    await api.put(PODS, ready_pod("llama-0", app="llama"), ready_pod("llama-1", app="llama"), ready_pod("x", app="x"))
    await api.put(SCALED_OBJECTS, scaled_object("llama", minReplicaCount=1, maxReplicaCount=8))
    await api.put(HPAS, hpa("llama", maximum=8, scaleUp={"tolerance": "0"}))


def names(workload: Workload) -> list[str]:
    return [pod.name for pod in workload.pods]


def reason(discovery: KubernetesDiscovery, name: str = "llama", namespace: str = "serving") -> str:
    try:
        discovery.workload(namespace, name)
    except DiscoveryError as error:
        return str(error)
    return ""


@pytest.mark.usefixtures("llama")
async def test_workload_joins_scaled_object_target_pods_and_hpa(client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        workload = discovery.workload("serving", "llama")
        assert (workload.requested, workload.current, names(workload)) == (2, 2, ["llama-0", "llama-1"])
        assert (workload.minimum, workload.maximum) == (1, 8)
        assert (workload.tolerance_up, workload.tolerance_down) == (0.0, 0.1)
        assert (workload.paused, workload.warnings) == (False, ())
        assert [found.name for found in discovery.scaled_objects()] == ["llama"]


@pytest.mark.usefixtures("llama")
async def test_changes_are_seen_without_asking_the_api_server_again(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        lists = dict(api.requests)

        def workload() -> Workload:
            return discovery.workload("serving", "llama")

        await until(
            lambda: all(api.requests["watch", r.plural] for r in (PODS, DEPLOYMENTS, HPAS, SCALED_OBJECTS)), "watches"
        )
        await api.put(DEPLOYMENTS, deployment("llama", replicas=3, current=2))
        await api.put(PODS, pod("llama-2", condition("PodScheduled", False, reason="Unschedulable", message="no GPU")))
        await api.put(HPAS, hpa("llama", maximum=8, scaleUp={"tolerance": "0"}, scaleDown={"tolerance": "0"}))
        await api.put(SCALED_OBJECTS, scaled_object("llama", maxReplicaCount=9))
        await until(lambda: workload().requested == 3 and workload().maximum == 9 and len(workload().pods) == 3, "news")
        await until(lambda: workload().tolerance_down == 0.0, "the tolerance")
        assert [(pod.phase, pod.reason) for pod in workload().pods][2] == (Phase.UNSCHEDULABLE, "no GPU")
        await api.delete(PODS, "serving", "llama-0")
        await until(lambda: names(workload()) == ["llama-1", "llama-2"], "the end of a pod")
        assert {key: n for key, n in api.requests.items() if key[0] in {"list", "get"}} == {
            key: n for key, n in lists.items() if key[0] in {"list", "get"}
        }


@pytest.mark.usefixtures("llama")
async def test_view_is_as_old_as_its_oldest_part(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:

        def age() -> float:
            return time.time() - discovery.workload("serving", "llama").seen_at

        await until(lambda: age() < 0.05, "a view of now")
        await api.stop()
        await until(lambda: discovery.workload("serving", "llama").warnings, "a warning")
        assert names(discovery.workload("serving", "llama")) == ["llama-0", "llama-1"]
        assert age() > 2.0
        (warning,) = discovery.workload("serving", "llama").warnings
        assert warning.startswith("the cluster has not been seen for 2s: cannot watch ")
        assert "no way to the API server" in warning
        await api.start()
        await until(lambda: age() < 0.05, "a view of now")
        assert discovery.workload("serving", "llama").warnings == ()


@pytest.mark.usefixtures("llama")
async def test_clock_that_jumps_makes_no_view_old(client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: time.time() - discovery.workload("serving", "llama").seen_at < 0.05, "a view of now")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 3600)
        assert now + 3600 - discovery.workload("serving", "llama").seen_at < 60


async def test_scaled_objects_come_change_and_go(api: FakeApi, client: ApiClient) -> None:
    told: list[list[str]] = []
    discovery = KubernetesDiscovery(
        client, OURS, on_change=lambda: told.append([s.name for s in discovery.scaled_objects()])
    )
    async with running(discovery):
        await until(lambda: api.requests["watch", "scaledobjects"], "the watch")
        await api.put(SCALED_OBJECTS, scaled_object("llama"))
        await until(lambda: told == [["llama"]], "the first")
        await api.put(SCALED_OBJECTS, scaled_object("other", address="other.keda.svc:9090"))
        await api.put(SCALED_OBJECTS, scaled_object("qwen"))
        await until(lambda: told == [["llama"], ["llama", "qwen"]], "the second, but not the other scaler's")
        await api.put(SCALED_OBJECTS, scaled_object("llama", address="other.keda.svc:9090"))
        await until(lambda: told[-1] == ["qwen"], "one that went to another scaler")
        await api.delete(SCALED_OBJECTS, "serving", "qwen")
        await until(lambda: told[-1] == [], "the end of one")


async def test_many_changes_at_once_are_told_once(api: FakeApi, client: ApiClient) -> None:
    await api.put(SCALED_OBJECTS, *(scaled_object(f"so-{i}") for i in range(50)))
    told: list[int] = []
    discovery = KubernetesDiscovery(client, OURS, on_change=lambda: told.append(len(discovery.scaled_objects())))
    async with running(discovery):
        assert told == [50]


@pytest.mark.usefixtures("llama")
async def test_scaled_object_that_changes_its_target_follows_it(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: api.requests["watch", "scaledobjects"], "the watch")
        await api.put(DEPLOYMENTS, deployment("x", replicas=1))
        await api.put(SCALED_OBJECTS, scaled_object("llama", target={"name": "x"}))
        await until(lambda: not reason(discovery) and names(discovery.workload("serving", "llama")) == ["x"], "x")
        await api.put(PODS, ready_pod("x-1", app="x"), ready_pod("llama-2", app="llama"))
        await until(lambda: names(discovery.workload("serving", "llama")) == ["x", "x-1"], "the new target's new pod")
    assert api.requests["list", "pods"] == 1


async def test_target_that_only_a_call_names_is_served_too(api: FakeApi, client: ApiClient) -> None:
    await api.put(DEPLOYMENTS, deployment("llama", replicas=1))
    await api.put(PODS, ready_pod("llama-0", app="llama"))
    await api.put(SCALED_OBJECTS, scaled_object("llama", address="10.9.8.7:9090"))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: not reason(discovery), "the workload")
        assert names(discovery.workload("serving", "llama")) == ["llama-0"]
        assert discovery.scaled_objects() == []


async def test_scaled_object_that_the_watch_has_missed_is_sought_once(api: FakeApi, client: ApiClient) -> None:
    await api.put(DEPLOYMENTS, deployment("llama", replicas=1))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: api.requests["watch", "scaledobjects"], "the watch")
        await api.put(SCALED_OBJECTS, scaled_object("llama"), said=False)
        assert reason(discovery) == "there is no ScaledObject serving/llama with an external trigger"
        await until(lambda: not reason(discovery), "the workload")
        for _ in range(20):
            assert reason(discovery, "nobody").startswith("there is no ScaledObject serving/nobody")
        await until(lambda: api.requests["list", "scaledobjects"] == 3, "one list for each that was sought")


async def test_namespaces_that_are_not_served_are_named(api: FakeApi, client: ApiClient) -> None:
    await api.put(SCALED_OBJECTS, scaled_object("llama"), scaled_object("llama", namespace="elsewhere"))
    async with running(KubernetesDiscovery(client, OURS, namespaces=["serving", "more"])) as discovery:
        assert [found.namespace for found in discovery.scaled_objects()] == ["serving"]
        assert (
            reason(discovery, namespace="elsewhere")
            == "namespace elsewhere is not served: this server serves only more, serving"
        )


@pytest.mark.usefixtures("llama")
async def test_what_nobody_needs_any_more_is_not_watched(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: api.requests["watch", "pods"] == 1 and api.requests["watch", "scaledobjects"], "watches")
        await api.delete(SCALED_OBJECTS, "serving", "llama")
        await until(lambda: not discovery.scaled_objects(), "the end of the ScaledObject")
        await api.drop_watches()
        await until(lambda: api.requests["watch", "scaledobjects"] == 2, "the one watch that goes on")
        assert api.requests["watch", "pods"] == 1


async def put_llama(api: FakeApi, namespace: str) -> None:
    await api.put(DEPLOYMENTS, deployment("llama", replicas=1, namespace=namespace))
    await api.put(PODS, ready_pod(f"llama-of-{namespace}", namespace, app="llama"))
    await api.put(SCALED_OBJECTS, scaled_object("llama", namespace=namespace))


MANY = [f"team-{i}" for i in range(NARROW + 1)]


@pytest.mark.parametrize(("namespaces", "lists"), [((), 1), (MANY, len(MANY))])
async def test_many_namespaces_are_watched_as_one_unless_only_some_may_be(
    api: FakeApi, client: ApiClient, namespaces: list[str], lists: int
) -> None:
    for namespace in MANY:
        await put_llama(api, namespace)
    async with running(KubernetesDiscovery(client, OURS, namespaces=namespaces)) as discovery:
        for namespace in MANY:
            assert names(discovery.workload(namespace, "llama")) == [f"llama-of-{namespace}"]
        assert api.requests["list", "pods"] == lists


async def test_one_namespace_too_many_turns_the_watches_into_one(api: FakeApi, client: ApiClient) -> None:
    *first, last = MANY
    for namespace in first:
        await put_llama(api, namespace)
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        assert api.requests["list", "pods"] == NARROW
        await until(lambda: api.requests["watch", "scaledobjects"], "the watch")
        await put_llama(api, last)
        await until(lambda: not reason(discovery, namespace=last), "the last namespace")
        for namespace in MANY:
            assert names(discovery.workload(namespace, "llama")) == [f"llama-of-{namespace}"]
        assert api.requests["list", "pods"] == NARROW + 1
        for namespace in MANY:
            await api.delete(SCALED_OBJECTS, namespace, "llama")
        await until(lambda: not discovery.scaled_objects(), "the end of all")
        await put_llama(api, last)
        await until(lambda: not reason(discovery, namespace=last), "one that comes back")


def node(name: str, *devices: str) -> dict[str, object]:
    """A ready node with devices, one of each."""
    has = dict.fromkeys(devices, "1")
    return {"metadata": metadata(name, ""), "status": {"conditions": [condition("Ready", True)], "allocatable": has}}


WAITS_FOR_A_GPU = condition(
    "PodScheduled", False, reason="Unschedulable", message="0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
)


def last_reason(discovery: KubernetesDiscovery) -> str:
    return discovery.workload("serving", "llama").pods[-1].reason


@pytest.mark.usefixtures("llama")
async def test_nodes_are_watched_once_a_pod_waits_for_a_device_and_those_without_it_are_named(
    api: FakeApi, client: ApiClient
) -> None:
    await api.put(NODES, node("gpu-7"))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        assert last_reason(discovery) == ""
        assert api.requests["list", "nodes"] == 0
        await api.put(PODS, pod("llama-2", WAITS_FOR_A_GPU))
        await until(lambda: "gpu-7 came without nvidia.com/gpu" in last_reason(discovery), "the node without a GPU")
        await api.put(NODES, node("gpu-7", "nvidia.com/gpu"))
        await until(lambda: "gpu-7" not in last_reason(discovery), "a node with one")
        await api.put(NODES, node("gpu-7"))
        await until(lambda: "gpu-7" in last_reason(discovery), "the node without a GPU")
        await api.put(PODS, ready_pod("llama-2", app="llama"))
        await until(lambda: last_reason(discovery) == "", "pods that wait for nothing")
        assert api.requests["list", "nodes"] == 1


@pytest.mark.usefixtures("llama")
async def test_within_namespaces_nodes_are_not_looked_at(api: FakeApi, client: ApiClient) -> None:
    await api.put(NODES, node("gpu-7"))
    await api.put(PODS, pod("llama-2", WAITS_FOR_A_GPU))
    async with running(KubernetesDiscovery(client, OURS, namespaces=["serving"])) as discovery:
        assert last_reason(discovery).endswith("Insufficient nvidia.com/gpu.")
        assert api.requests["list", "nodes"] == 0


@pytest.mark.usefixtures("llama")
async def test_nodes_that_may_not_be_seen_are_no_hindrance(api: FakeApi, client: ApiClient) -> None:
    api.forbidden.add(("list", "nodes"))
    await api.put(PODS, pod("llama-2", WAITS_FOR_A_GPU))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        last_reason(discovery)
        await until(lambda: api.requests["list", "nodes"], "a refusal")
        assert last_reason(discovery).endswith("Insufficient nvidia.com/gpu.")


async def test_missing_target_is_named(api: FakeApi, client: ApiClient) -> None:
    await api.put(SCALED_OBJECTS, scaled_object("llama"))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        expected = "there is no Deployment serving/llama, which the ScaledObject's scaleTargetRef names"
        assert reason(discovery) == expected


@pytest.mark.usefixtures("llama")
async def test_pods_that_may_not_be_seen_are_no_pods_that_are_not_there(api: FakeApi, client: ApiClient) -> None:
    api.forbidden.add(("list", "pods"))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        assert 'may not list pods in namespace serving: a Role or ClusterRole with the rule {apiGroups: [""]' in reason(
            discovery
        )


@pytest.mark.usefixtures("llama")
async def test_hpa_that_may_not_be_seen_is_warned_of_and_no_hindrance(api: FakeApi, client: ApiClient) -> None:
    api.forbidden.add(("list", "horizontalpodautoscalers"))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        workload = discovery.workload("serving", "llama")
        assert (workload.tolerance_up, workload.tolerance_down) == (0.1, 0.1)
        assert workload.warnings[0].startswith("the HPA cannot be read, a tolerance of 0.1 is assumed: ")
        await until(lambda: time.time() - discovery.workload("serving", "llama").seen_at < 0.05, "a view of now")


@pytest.fixture
async def group(api: FakeApi) -> None:
    """A custom kind with `/scale`, and one object of it with two groups of two pods."""
    names = {"kind": "LeaderWorkerSet"}
    api.groups["/apis/leaderworkerset.x-k8s.io/v1"] = [
        {"name": "leaderworkersets", **names},
        {"name": "leaderworkersets/scale", "kind": "Scale"},
    ]
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    for pod_name, worker in (("llama-0", "0"), ("llama-0-1", "1"), ("llama-1", "0"), ("llama-1-1", "1")):
        await api.put(PODS, ready_pod(pod_name, app="llama", **{index: worker}))
    await api.put(GROUPS, {"metadata": metadata("llama")})
    await api.set_scale(GROUPS, "serving", "llama", scale_object(2))
    await api.put(SCALED_OBJECTS, scaled_object("llama", target=GROUP_TARGET))


def scale_object(replicas: int, selector: str = "app=llama") -> dict[str, object]:
    return {"spec": {"replicas": replicas}, "status": {"replicas": replicas, "selector": selector}}


@pytest.mark.usefixtures("group")
async def test_any_kind_with_scale_can_be_a_target_and_only_leaders_count(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        workload = discovery.workload("serving", "llama")
        assert (workload.requested, names(workload)) == (2, ["llama-0", "llama-1"])
        await until(lambda: time.time() - discovery.workload("serving", "llama").seen_at < 0.05, "a view of now")
        await api.set_scale(GROUPS, "serving", "llama", scale_object(5))
        await api.put(GROUPS, {"metadata": metadata("llama")})
        await until(lambda: discovery.workload("serving", "llama").requested == 5, "the new count")


@pytest.mark.usefixtures("group")
async def test_scale_is_read_when_its_object_changes_and_not_for_every_question(
    api: FakeApi, client: ApiClient
) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: api.requests["watch", "leaderworkersets"], "the watch")
        for _ in range(100):
            discovery.workload("serving", "llama")
        before = api.requests["get", "leaderworkersets/scale"]
        for _ in range(30):
            await api.put(GROUPS, {"metadata": metadata("llama")})
        await api.set_scale(GROUPS, "serving", "llama", scale_object(3))
        await until(lambda: discovery.workload("serving", "llama").requested == 3, "the new count")
        assert api.requests["get", "leaderworkersets/scale"] - before < 10


@pytest.mark.usefixtures("group")
async def test_scale_that_cannot_be_read_is_right_until_its_object_changed(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: time.time() - discovery.workload("serving", "llama").seen_at < 0.05, "a view of now")
        read = time.time()
        await until(lambda: time.time() - read > 1.0, "some time without a change")
        changed = time.time()
        api.refuse["get", "leaderworkersets/scale"] = [(500, {"message": "not now"}, {})] * 100
        await api.put(GROUPS, {"metadata": metadata("llama")})
        await until(lambda: time.time() - discovery.workload("serving", "llama").seen_at > 1.5, "a view that ages")
        workload = discovery.workload("serving", "llama")
        assert workload.requested == 2
        assert workload.seen_at > changed - 0.5


@pytest.mark.usefixtures("group")
async def test_scale_without_a_selector_is_told(api: FakeApi, client: ApiClient) -> None:
    await api.set_scale(GROUPS, "serving", "llama", scale_object(2, selector=""))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        assert reason(discovery).startswith("the /scale of LeaderWorkerSet serving/llama reports no status.selector")


@pytest.mark.usefixtures("group")
async def test_scale_with_a_selector_that_cannot_be_read_is_told(api: FakeApi, client: ApiClient) -> None:
    await api.set_scale(GROUPS, "serving", "llama", scale_object(2, selector="a in b"))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        assert "the /scale of LeaderWorkerSet serving/llama cannot be used: label selector" in reason(discovery)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("what", ["object", "scale"])
async def test_missing_custom_target_is_named(api: FakeApi, client: ApiClient, what: str) -> None:
    if what == "object":
        await api.delete(GROUPS, "serving", "llama")
    else:
        await api.set_scale(GROUPS, "serving", "llama", None)
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        assert reason(discovery).startswith("there is no LeaderWorkerSet serving/llama")


@pytest.mark.parametrize(
    ("served", "api_version", "kind", "message"),
    [
        (None, "ray.io/v1", "RayCluster", "the cluster has no API ray.io/v1, which scaleTargetRef names for its RayC"),
        (
            [{"name": "rayclusters", "kind": "RayCluster"}, {"name": "rayclusters/status", "kind": "RayCluster"}],
            "ray.io/v1",
            "RayCluster",
            "RayCluster (ray.io/v1) has no /scale subresource, KubeRay gives its resources none: neither KEDA nor",
        ),
        (
            [{"name": "things", "kind": "Thing"}],
            "example.com/v1",
            "Thing",
            "Thing (example.com/v1) has no /scale subresource, its CustomResourceDefinition declares none",
        ),
        (
            [{"name": "things", "kind": "Thing"}],
            "example.com/v1",
            "thing",
            "example.com/v1 has no kind thing, which scaleTargetRef names; it has Thing",
        ),
    ],
)
async def test_kind_that_cannot_be_scaled_is_told_with_the_reason(
    api: FakeApi, client: ApiClient, served: list[dict[str, str]] | None, api_version: str, kind: str, message: str
) -> None:
    if served is not None:
        api.groups[f"/apis/{api_version}"] = list(served)
    target = {"apiVersion": api_version, "kind": kind, "name": "llama"}
    await api.put(SCALED_OBJECTS, scaled_object("llama", target=target))
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        assert reason(discovery).startswith(message)


@pytest.mark.usefixtures("group")
async def test_scale_can_be_patched_past_the_hpa(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await discovery.patch_scale("serving", "llama", 7)
        await api.put(GROUPS, {"metadata": metadata("llama")})
        await until(lambda: discovery.workload("serving", "llama").requested == 7, "the new count")


@pytest.mark.usefixtures("llama")
async def test_pause_reaches_the_workload(api: FakeApi, client: ApiClient) -> None:
    async with running(KubernetesDiscovery(client, OURS)) as discovery:
        await until(lambda: api.requests["watch", "scaledobjects"], "the watch")
        await api.put(SCALED_OBJECTS, scaled_object("llama", annotations={"autoscaling.keda.sh/paused": "true"}))
        await until(lambda: discovery.workload("serving", "llama").paused, "the pause")


async def test_before_anything_is_seen_the_reason_is_that(client: ApiClient) -> None:
    assert reason(KubernetesDiscovery(client, OURS)) == "the ScaledObjects are not listed yet"
