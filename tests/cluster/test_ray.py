"""RayWorkerGroups with the real KubeRay operator: counts are carried both ways, and what hinders that is said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster.control_plane import Manifest
from tests.cluster.fleet import ClusterFleet
from tests.cluster.keda import KedaCluster
from tests.cluster.kuberay import CLUSTERS, GROUP, KubeRay, ray_cluster, ray_service, serve_with, worker_group
from tests.cluster.local_pod import LocalPod
from tests.cluster.ray_nodes import APPLICATION, DEPLOYMENT, RayNodes
from tests.cluster.ray_stage import RayStage
from tests.cluster.release import Release
from tests.cluster.workloads import scaled_object
from tests.waiting import until

pytestmark = pytest.mark.toolchain

ONE_EACH = {
    "targetOngoingRequests": "1",
    "smoothingFactor": "1",
    "lookAhead": "0",
    "upscaleDelay": "0",
    "downscaleDelay": "3s",
    "downscaleLimit": "100/1s",
}
"""A worker for each request."""
KIND: Manifest = {"apiVersion": "vllm-scaler.dev/v1alpha1", "kind": "RayWorkerGroup"}


@pytest.fixture(scope="module")
def kuberay(keda_cluster: KedaCluster) -> Iterator[KubeRay]:
    """KubeRay's operator."""
    with KubeRay(keda_cluster) as operator:
        yield operator


@pytest.fixture(scope="module")
def scaler(keda_cluster: KedaCluster, kuberay: KubeRay) -> Iterator[LocalPod]:
    """A scaler of the chart, with its own rights, that serves all namespaces."""
    namespace = keda_cluster.create_namespace()
    with Release(keda_cluster, namespace) as release:
        release.install("ray: {enabled: true}")
        keda_cluster.wait_for_crds("rayworkergroups.vllm-scaler.dev")
        pod = release.run()
        keda_cluster.wait_for("a ready scaler", pod.is_ready)
        yield pod
    keda_cluster.kubectl("delete", "crd", "rayworkergroups.vllm-scaler.dev")
    keda_cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def ray(keda_cluster: KedaCluster, keda_namespace: str, scaler: LocalPod) -> RayStage:
    """A namespace without anything."""
    return RayStage(keda_cluster, keda_namespace)


def carried(ray: RayStage, name: str, count: int) -> bool:
    return len(ray.workers(name)) == count and ray.status(name).get("readyReplicas") == count


def test_keda_grows_a_worker_group_and_takes_idle_workers_back(ray: RayStage, scaler: LocalPod) -> None:
    ray.apply(ray_cluster("llama", replicas=2), worker_group("llama"))
    ray.wait_for("two workers", lambda: carried(ray, "llama", 2))
    assert ray.worker_group("llama")["spec"]["replicas"] == 2  # what was there, and no 0
    selector = f"ray.io/cluster=llama,ray.io/group={GROUP}"
    assert ray.status("llama")["selector"] == selector
    with ClusterFleet(ray.cluster, selector, namespace=ray.namespace, port=8080) as fleet:
        ray.wait_for("two played workers", lambda: len(fleet.pods()) == 2)
        fleet.send(5)
        ray.apply(scaled_object("llama", scaler.grpc, ONE_EACH, target=KIND))
        ray.wait_for("five workers", lambda: carried(ray, "llama", 5))
        assert ray.group_of("llama")["replicas"] == 5

        fleet.hang_up()
        ray.wait_for("five played workers", lambda: len(fleet.pods()) == 5)
        fleet.send(2)
        busy = {pod.name for pod in fleet.pods() if pod.running}
        ray.wait_for("two workers", lambda: carried(ray, "llama", 2))
        assert set(ray.workers("llama")) == busy
        ray.wait_for("a cleared list", lambda: not ray.group_of("llama")["scaleStrategy"]["workersToDelete"])
    assert ray.condition("llama") == ("True", "Carried", f"RayCluster llama is to have 2 replicas of group {GROUP}")
    assert ("Scaled", f"replicas of group {GROUP} of RayCluster llama: 2 → 5") in ray.events("llama")


def test_a_worker_that_drains_costs_no_other_one_its_place(ray: RayStage, kuberay: KubeRay) -> None:
    ray.apply(ray_cluster("llama", replicas=3, drain="24h"), worker_group("llama"))
    ray.wait_for("three workers", lambda: carried(ray, "llama", 3))
    before = set(ray.workers("llama"))
    ray.scale("llama", 2)
    ray.wait_for("two workers", lambda: carried(ray, "llama", 2))
    (victim,) = before - set(ray.workers("llama"))
    assert ray.group_of("llama")["scaleStrategy"]["workersToDelete"] == [victim]
    ray.scale("llama", 3)
    ray.wait_for("the count", lambda: ray.group_of("llama")["replicas"] == 3)
    kuberay.restart()  # till then it waits for the end of the one that it deleted, which it remembers
    ray.wait_for("three workers", lambda: carried(ray, "llama", 3))
    assert before - {victim} < set(ray.workers("llama"))
    ray.cluster.kubectl("delete", "pod", victim, "--force", "--grace-period=0", "-n", ray.namespace)
    ray.wait_for("a cleared list", lambda: not ray.group_of("llama")["scaleStrategy"]["workersToDelete"])


@pytest.fixture
def indexing(kuberay: KubeRay) -> Iterator[None]:
    """KubeRay says which pods make a replica, as it does by itself from 1.6 on."""
    kuberay.restart("RayMultiHostIndexing")
    yield
    kuberay.restart()


def test_replicas_of_several_hosts_come_and_go_as_one(ray: RayStage, indexing: None) -> None:
    def there(count: int) -> bool:
        return len(ray.workers("big")) == 2 * count and ray.status("big").get("readyReplicas") == count

    ray.apply(ray_cluster("big", replicas=1, hosts=2), worker_group("big"))
    ray.wait_for("two hosts", lambda: there(1))
    ray.scale("big", 3)
    ray.wait_for("six hosts", lambda: there(3))
    ray.scale("big", 2)
    ray.wait_for("four hosts", lambda: there(2))
    assert len(ray.ready(ray.status("big")["selector"])) == 2


def test_hosts_that_cannot_be_told_apart_are_counted_but_hold_autoscalers(ray: RayStage) -> None:
    ray.apply(ray_cluster("big", replicas=1, hosts=2), worker_group("big"))
    ray.wait_for("two hosts", lambda: len(ray.workers("big")) == 2 and ray.status("big").get("replicas") == 1)
    ray.scale("big", 2)
    ray.wait_for("four hosts", lambda: len(ray.workers("big")) == 4 and ray.status("big").get("readyReplicas") == 2)
    assert "selector" not in ray.status("big")
    assert "switch its feature gate RayMultiHostIndexing on" in ray.condition("big")[2]


def test_what_cannot_be_carried_says_what_to_change_and_goes_on_when_that_is_done(ray: RayStage) -> None:
    ray.apply(ray_cluster("llama", replicas=2), worker_group("llama", group="tpu"), worker_group("nothing"))
    assert ray.wait_for("the condition", lambda: ray.condition("llama")[2]) == (
        "RayCluster llama has no worker group tpu; it has gpu"
    )
    assert ray.condition("nothing")[1:] == (
        "RayClusterNotFound",
        f"there is no RayCluster nothing in namespace {ray.namespace}: create it, or correct targetRef",
    )
    assert "selector" not in ray.status("nothing")
    ray.apply(ray_cluster("nothing", replicas=1))
    ray.wait_for("a worker", lambda: carried(ray, "nothing", 1))
    ray.wait_for("the event", lambda: "RayClusterNotFound" in dict(ray.events("nothing")))
    ray.cluster.kubectl("delete", "raycluster", "nothing", "-n", ray.namespace)
    ray.wait_for("its end", lambda: ray.condition("nothing")[1] == "RayClusterNotFound")
    assert ray.group_of("llama")["replicas"] == 2


def test_the_groups_limits_hold_until_they_are_told_to_give_way(ray: RayStage) -> None:
    ray.apply(ray_cluster("llama", replicas=2, minimum=2, maximum=3), worker_group("llama"))
    ray.wait_for("two workers", lambda: carried(ray, "llama", 2))
    for wanted, count, told in ((1, 2, "1 replicas are below minReplicas 2"), (5, 3, "above maxReplicas 3")):
        ray.scale("llama", wanted)
        ray.wait_for(told, lambda told=told: told in ray.condition("llama", "Limited")[2])
        ray.wait_for(f"{count} workers", lambda count=count: carried(ray, "llama", count))
    ray.cluster.kubectl("patch", "rwg/llama", "--type=merge", '-p={"spec": {"widenLimits": true}}', "-n", ray.namespace)
    ray.wait_for("five workers", lambda: carried(ray, "llama", 5))
    assert ray.condition("llama", "Limited")[0] == "False"
    assert ray.group_of("llama")["maxReplicas"] == 5


def test_another_writer_is_named_and_not_fought(ray: RayStage) -> None:
    ray.apply(ray_cluster("llama", replicas=1), worker_group("llama"))
    ray.wait_for("a worker", lambda: carried(ray, "llama", 1))
    ray.scale("llama", 3)
    ray.wait_for("three workers", lambda: carried(ray, "llama", 3))
    value = '[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 2}]'
    edit = ("patch", "raycluster", "llama", "--type=json", f"-p={value}", "--field-manager=argocd", "-n", ray.namespace)
    ray.cluster.kubectl(*edit)
    ray.wait_for("the event", lambda: "OtherWriter" in dict(ray.events("llama")))
    ray.wait_for("what is right, once", lambda: ray.group_of("llama")["replicas"] == 3)
    ray.cluster.kubectl(*edit)
    ray.wait_for("the condition", lambda: ray.condition("llama")[1] == "OtherWriter")
    assert ray.condition("llama")[2].startswith(
        "argocd has set replicas of group gpu of RayCluster llama to 2, 3 is asked for here: nothing is written for 60s"
    )
    ray.scale("llama", 4)
    ray.wait_for("the new wish", lambda: "4 is asked for" in ray.condition("llama")[2])
    assert ray.group_of("llama")["replicas"] == 2


def test_a_manifest_applied_again_is_put_right_at_once(ray: RayStage) -> None:
    ray.apply(ray_cluster("llama", minimum=1), worker_group("llama"))
    ray.wait_for("a worker", lambda: carried(ray, "llama", 1))
    ray.scale("llama", 3)
    ray.wait_for("three workers", lambda: carried(ray, "llama", 3))
    ray.apply(ray_cluster("llama", minimum=1, maximum=20))  # it sets replicas to 0 though it does not say so
    ray.wait_for("three workers", lambda: ray.group_of("llama")["replicas"] == 3 and carried(ray, "llama", 3))
    assert ray.group_of("llama")["maxReplicas"] == 20


def test_a_worker_group_that_goes_leaves_the_cluster_as_it_is(ray: RayStage) -> None:
    ray.apply(ray_cluster("llama", replicas=2), worker_group("llama"))
    ray.wait_for("two workers", lambda: carried(ray, "llama", 2))
    before = ray.workers("llama"), ray.cluster.get(f"{CLUSTERS.format(ray.namespace)}/llama")["spec"]
    ray.cluster.kubectl("delete", "rwg", "llama", "-n", ray.namespace)
    ray.apply(ray_cluster("other", replicas=1), worker_group("other"))
    ray.wait_for("a later worker", lambda: carried(ray, "other", 1))
    assert before == (ray.workers("llama"), ray.cluster.get(f"{CLUSTERS.format(ray.namespace)}/llama")["spec"])


def test_wrong_manifests_are_refused_with_what_is_right(ray: RayStage) -> None:
    for manifest, told in (
        (worker_group("llama", kind="Deployment"), "must be RayCluster or RayService"),
        (worker_group("llama", group=""), "spec.group"),
        (worker_group("llama", replicas=-1), "spec.replicas"),
    ):
        with pytest.raises(RuntimeError, match=told):
            ray.apply(manifest)
    ray.apply(worker_group("llama"))
    with pytest.raises(RuntimeError, match="make another RayWorkerGroup"):
        ray.apply(worker_group("llama", target="other"))


def test_with_rays_own_autoscaler_the_floor_follows(ray: RayStage) -> None:
    ray.apply(ray_cluster("llama", replicas=1, minimum=1, autoscaled=True), worker_group("llama"))
    ray.wait_for("a worker", lambda: carried(ray, "llama", 1))
    ray.scale("llama", 3)
    ray.wait_for("three workers", lambda: carried(ray, "llama", 3))
    ray.scale("llama", 2)
    ray.wait_for("the floor", lambda: ray.group_of("llama")["minReplicas"] == 2)
    group = ray.group_of("llama")
    assert group["replicas"] == 1  # Ray's autoscaler's
    assert "workersToDelete" not in group.get("scaleStrategy", {})


def test_a_service_keeps_its_count_through_an_upgrade(ray: RayStage) -> None:
    ray.apply(ray_service("chat", replicas=1), worker_group("chat", kind="RayService"))
    old = ray.wait_for("a cluster", lambda: ray.pending("chat"))
    ray.wait_for("its worker", lambda: len(ray.workers(old)) == 1 and ray.status("chat").get("readyReplicas") == 1)
    serve_with(ray.cluster, ray.namespace, "chat", active=old)
    ray.scale("chat", 3)
    ray.wait_for("three workers", lambda: len(ray.workers(old)) == 3)
    assert ray.group_of_service("chat")["replicas"] == 3

    ray.apply(ray_service("chat", image="rayproject/ray:2.53.0"))
    new = ray.wait_for("a second cluster", lambda: ray.pending("chat"))
    assert new != old
    ray.wait_for("its three workers", lambda: len(ray.workers(new)) == 3)
    assert ray.status("chat")["selector"] == f"ray.io/cluster={old},ray.io/group=gpu"
    ray.scale("chat", 4)
    ray.wait_for("four workers each", lambda: len(ray.workers(old)) == len(ray.workers(new)) == 4)

    serve_with(ray.cluster, ray.namespace, "chat", active=new)
    ray.wait_for("the new selector", lambda: ray.status("chat")["selector"] == f"ray.io/cluster={new},ray.io/group=gpu")
    assert ray.status("chat")["readyReplicas"] == 4
    assert ray.condition("chat")[:2] == ("True", "Carried")


@pytest.mark.timeout(1200)  # Ray's nodes take a minute each to start where the machine is busy
async def test_a_real_serve_deployment_is_scaled_with_its_workers_and_loses_no_request(
    ray: RayStage, tmp_path: Path
) -> None:
    dashboard = ray.cluster.reserve_port("ray")
    ray.apply(ray_cluster("llama", replicas=1, dashboard=dashboard))
    with RayNodes(ray, "llama", dashboard) as nodes:

        def served(count: int) -> bool:
            there = nodes.follow() == count and carried(ray, "llama", count)
            return there and ray.condition("llama")[1] == "Carried" and nodes.target() == count

        ray.wait_for("a node", nodes.follow)
        nodes.deploy()
        ray.apply(worker_group("llama", serve={"application": APPLICATION, "deployment": DEPLOYMENT}))
        ray.wait_for("a replica", lambda: served(1))
        assert ray.worker_group("llama")["spec"]["replicas"] == 1
        ray.scale("llama", 2)
        ray.wait_for("two replicas", lambda: served(2))
        nodes.deploy(max_ongoing_requests=2)  # at which Serve's target falls to the configuration's
        ray.wait_for("two replicas of the new kind", lambda: nodes.limit() == 2 and served(2))

        pods = ray.workers("llama")
        marks, end, began = tmp_path / "marks", tmp_path / "end", time.monotonic()
        marks.mkdir()
        query = {"mark": str(marks), "until": str(end)}
        async with httpx.AsyncClient(timeout=60.0, trust_env=False) as client:
            requests = [asyncio.create_task(client.get(nodes.url, params=query)) for _ in range(4)]
            await until(lambda: len(list(marks.iterdir())) == 4, "four requests at work")
            await asyncio.to_thread(ray.scale, "llama", 1)
            await asyncio.to_thread(ray.wait_for, "the target", lambda: nodes.target() == 1)
            await until(lambda: time.monotonic() - began > 10, "10 s")
            end.touch()
            await asyncio.to_thread(ray.wait_for, "one replica", lambda: served(1))
            answers = await asyncio.gather(*requests)
        assert [answer.status_code for answer in answers] == [200] * 4
        assert sorted(answer.json()["pod"] for answer in answers) == sorted(pods * 2)  # one of which has gone
