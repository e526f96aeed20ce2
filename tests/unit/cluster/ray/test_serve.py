"""Counts that are a Serve deployment's target, before Serve's REST API and an API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.events import EventRecorder
from scaler.cluster.ray import bridge, carrier
from scaler.cluster.ray import serve as serve_api
from scaler.cluster.ray.bridge import RayBridge
from scaler.cluster.ray.model import BridgeError, ServeRef, parse_cluster
from scaler.cluster.ray.serve import ServeApi
from scaler.cluster.resources import PODS, RAY_CLUSTERS, RAY_SERVICES, RAY_WORKER_GROUPS
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.ray.fake_serve import FakeServe
from tests.unit.cluster.ray.world import Json, cluster_json, group_json, service_json, worker_group_json, worker_json
from tests.waiting import background, until

ENGINE = ServeRef("llm", "engine")
UNANSWERED = {"name": "dashboard", "containerPort": 1}
SPEC = {"application": "llm", "deployment": "engine"}


@pytest.fixture
async def serve() -> AsyncIterator[FakeServe]:
    async with FakeServe() as serve:
        yield serve


def cluster(port: int, *, head: str = "127.0.0.1", **spec: Any) -> Json:
    groups = spec.pop("groups", [group_json(replicas=1)])
    ports = [{"name": "dashboard", "containerPort": port}]
    template = {"spec": {"containers": [{"name": "ray-head", "ports": ports}]}}
    made = cluster_json("llama", *groups, headGroupSpec={"template": template}, **spec)
    made["status"] = {"head": {"podIP": head}}
    return made


@pytest.mark.parametrize(
    ("head", "ports", "dashboard"),
    [
        ("10.0.0.7", [], "10.0.0.7:8265"),
        ("10.0.0.7", [{"name": "gcs", "containerPort": 6379}, {"name": "dashboard", "containerPort": 9}], "10.0.0.7:9"),
        ("fd00::7", [], "[fd00::7]:8265"),
        ("", [], ""),
    ],
)
def test_the_dashboard_is_on_the_heads_own_port(head: str, ports: list[Json], dashboard: str) -> None:
    made = cluster_json("llama", headGroupSpec={"template": {"spec": {"containers": [{"ports": ports}]}}})
    made["status"] = {"head": {"podIP": head}}
    assert parse_cluster(made).head == dashboard


async def test_a_deployment_is_what_its_replicas_say(serve: FakeServe) -> None:
    serve.target = 3
    serve.run("a")
    serve.run("b", state="STOPPING")
    serve.run("", state="STARTING")
    serve.proxies = {"node-c": {"node_instance_id": "c"}, "node-d": {"node_instance_id": None}}
    api = ServeApi()
    state = await api.look(parse_cluster(cluster(serve.port)), ENGINE)
    await api.close()
    assert (state.target, state.replicas, state.running) == (3, 2, 1)
    assert state.pods == {"a", "b", "c"}


async def test_the_token_is_read_anew_at_every_call(serve: FakeServe, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    serve.token = "new"
    api, llama = ServeApi(file), parse_cluster(cluster(serve.port))
    with pytest.raises(BridgeError, match=r"says 403 .*the token of --ray-token-file is not the cluster's"):
        await api.look(llama, ENGINE)
    file.write_text("new\n")
    await api.scale(llama, ENGINE, 4)
    await api.close()
    assert serve.asked == [4]


@pytest.mark.parametrize(
    ("broken", "serve_ref", "reason", "told"),
    [
        ({"token": "x"}, ENGINE, "ServeTokenRefused", "start the scaler with --ray-token-file"),
        ({"broken": 503}, ENGINE, "ServeUnreachable", "says 503 something broke"),
        ({"external": False}, ENGINE, "ExternalScalerDisabled", "set external_scaler_enabled: true in the application"),
        ({}, ServeRef("chat", "engine"), "ApplicationNotFound", "has no application chat; it has llm"),
        ({}, ServeRef("llm", "chat"), "DeploymentNotFound", "has no deployment chat; it has engine"),
    ],
)
async def test_what_serve_refuses_says_what_to_change(
    serve: FakeServe, broken: dict[str, Any], serve_ref: ServeRef, reason: str, told: str
) -> None:
    for name, value in broken.items():
        setattr(serve, name, value)
    api, llama = ServeApi(), parse_cluster(cluster(serve.port))

    async def ask() -> None:
        await api.look(llama, serve_ref)
        await api.scale(llama, serve_ref, 2)

    with pytest.raises(BridgeError) as raised:
        await ask()
    await api.close()
    assert raised.value.reason == reason
    assert told in str(raised.value)


@pytest.mark.parametrize("head", ["", "127.0.0.1"], ids=["no head yet", "a head that does not answer"])
async def test_a_head_that_cannot_be_asked_is_told(head: str) -> None:
    api = ServeApi()
    with pytest.raises(BridgeError) as raised:
        await api.look(parse_cluster(cluster(1, head=head)), ENGINE)
    await api.close()
    assert raised.value.reason == "ServeUnreachable"


class Scene:
    """The bridge at work on a cluster whose Serve can be asked."""

    def __init__(self, api: FakeApi, serve: FakeServe) -> None:
        self.api = api
        self.serve = serve

    def group(self) -> Json:
        found: Json = self.api.item(RAY_CLUSTERS, "serving", "llama")["spec"]["workerGroupSpecs"][0]
        return found

    def status(self) -> Json:
        found: Json = self.api.item(RAY_WORKER_GROUPS, "serving", "llama").get("status") or {}
        return found

    def reason(self) -> str:
        return next((c["reason"] for c in self.status().get("conditions", ()) if c["type"] == "Ready"), "")

    async def begin(self, *workers: str, replicas: int | None, count: int = 1, **spec: Any) -> None:
        """A cluster of so many workers, and a RayWorkerGroup that asks for `replicas`."""
        groups = [group_json(replicas=count, maxReplicas=5)]
        await self.api.put(RAY_CLUSTERS, cluster(self.serve.port, groups=groups, **spec))
        await self.api.put(PODS, *(worker_json(name) for name in workers))
        asked = {} if replicas is None else {"replicas": replicas}
        await self.api.put(RAY_WORKER_GROUPS, worker_group_json(serve=SPEC, **asked))


@pytest.fixture
async def scene(
    api: FakeApi, client: ApiClient, serve: FakeServe, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    monkeypatch.setattr(bridge, "_RETRY_S", 0.02)
    monkeypatch.setattr(carrier, "_SERVE_LOOK_S", 0.02)
    monkeypatch.setattr(serve_api, "_TIMEOUT_S", 60.0)
    events = EventRecorder(client, "vllm-scaler-0")
    async with background(RayBridge(client, events, lambda _: {}, lambda: True).run()):
        yield Scene(api, serve)


async def test_the_target_is_sent_and_workers_are_made_for_it(scene: Scene, serve: FakeServe) -> None:
    serve.run("a")
    await scene.begin("a", replicas=3)
    await until(lambda: scene.group()["replicas"] == 3, "the workers")
    assert serve.asked == [3]
    serve.run("", state="STARTING")
    await until(lambda: scene.status().get("replicas") == 2, "what Serve counts")
    assert scene.status()["readyReplicas"] == 1


async def test_under_rays_autoscaler_only_the_target_is_sent(scene: Scene, serve: FakeServe) -> None:
    await scene.begin("a", replicas=3, enableInTreeAutoscaling=True)
    await until(lambda: scene.reason() == "Carried", "the status")
    assert serve.asked == [3]
    assert (scene.group()["replicas"], scene.group()["minReplicas"]) == (1, 0)


async def test_a_worker_goes_only_when_no_replica_and_no_proxy_is_left_on_it(scene: Scene, serve: FakeServe) -> None:
    serve.target = 2
    serve.run("a", "b")
    await scene.begin("a", "b", replicas=1, count=2)
    await until(lambda: serve.asked == [1], "the lower target")
    serve.replicas[0]["state"] = "STOPPING"
    serve.proxies = {"node-a": {"node_instance_id": "a"}}
    await until(lambda: scene.status().get("readyReplicas") == 1, "a replica that stops")
    assert scene.group()["replicas"] == 2
    del serve.replicas[0]
    await until(lambda: scene.status().get("replicas") == 1, "its end")
    assert scene.group()["replicas"] == 2  # its proxy finishes what it has
    serve.proxies = {}
    await until(lambda: scene.group()["replicas"] == 1, "one worker less")
    assert scene.group()["scaleStrategy"] == {"workersToDelete": ["a"]}


async def test_a_target_that_a_new_deployment_forgot_is_sent_again(scene: Scene, serve: FakeServe) -> None:
    await scene.begin("a", replicas=4)
    await until(lambda: serve.asked == [4], "the target")
    serve.target = 1
    await until(lambda: serve.asked == [4, 4], "the target again")


async def test_a_cluster_to_come_gets_its_workers_before_anything_is_deployed_on_it(
    scene: Scene, serve: FakeServe, api: FakeApi
) -> None:
    new = {**cluster_json("new", group_json(replicas=1)), "status": {"head": {"podIP": "127.0.0.1"}}}
    new["spec"]["headGroupSpec"] = {"template": {"spec": {"containers": [{"ports": [UNANSWERED]}]}}}
    await api.put(RAY_SERVICES, service_json("chat", group_json(replicas=1), active="llama", pending="new"))
    await api.put(RAY_CLUSTERS, cluster(serve.port), new)
    await api.put(RAY_WORKER_GROUPS, worker_group_json(kind="RayService", target="chat", serve=SPEC, replicas=3))
    await until(lambda: scene.reason() == "Carried", "the status")
    assert serve.asked == [3]
    assert api.item(RAY_CLUSTERS, "serving", "new")["spec"]["workerGroupSpecs"][0]["replicas"] == 3


async def test_the_groups_maximum_holds_for_serve_too(scene: Scene, serve: FakeServe) -> None:
    await scene.begin("a", replicas=300)
    await until(lambda: serve.asked == [5], "the target")


async def test_without_a_count_serves_target_is_taken_over(scene: Scene, serve: FakeServe, api: FakeApi) -> None:
    serve.target = 2
    await scene.begin("a", replicas=None)
    await until(lambda: scene.reason() == "Carried", "the status")
    assert api.item(RAY_WORKER_GROUPS, "serving", "llama")["spec"]["replicas"] == 2
    assert serve.asked == []


async def test_there_is_no_selector_before_a_count_was_taken_over(scene: Scene, serve: FakeServe) -> None:
    serve.broken = 500
    await scene.begin("a", replicas=None)
    await until(lambda: scene.reason() == "ServeUnreachable", "the condition")
    assert scene.status().get("selector") is None
    serve.broken = 0
    await until(lambda: scene.status().get("selector"), "the selector")


async def test_a_head_that_hangs_holds_up_no_other_group(scene: Scene, serve: FakeServe, api: FakeApi) -> None:
    serve.hung.clear()
    await scene.begin("a", replicas=2)
    await api.put(RAY_CLUSTERS, cluster_json("other", group_json(replicas=1)))
    await api.put(RAY_WORKER_GROUPS, worker_group_json("other", target="other", replicas=3))
    await until(
        lambda: api.item(RAY_CLUSTERS, "serving", "other")["spec"]["workerGroupSpecs"][0]["replicas"] == 3, "the other"
    )
    assert scene.reason() == ""  # the first one still waits
    serve.hung.set()
    await until(lambda: serve.asked == [2], "the target")


async def test_while_serve_cannot_be_asked_no_worker_goes(scene: Scene, serve: FakeServe) -> None:
    serve.broken = 500
    await scene.begin("a", "b", replicas=1, count=2)
    await until(lambda: scene.reason() == "ServeUnreachable", "the condition")
    assert scene.group()["replicas"] == 2
    serve.broken, serve.target = 0, 2
    await until(lambda: scene.group()["replicas"] == 1, "one worker less")
