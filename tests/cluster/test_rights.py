"""The chart's roles, before a real API server: every call of the scaler is allowed, and every right is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import grpc
import pytest
import yaml

from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from tests.cluster import toolchain
from tests.cluster.audit import ApiCall
from tests.cluster.control_plane import Manifest
from tests.cluster.fleet import ClusterFleet
from tests.cluster.keda import KedaCluster
from tests.cluster.kuberay import install_kinds, ray_cluster, ray_service, serve_with, worker_group
from tests.cluster.local_pod import LocalPod
from tests.cluster.release import Release, Right, unused, without_right
from tests.cluster.workload_objects import GROUP_KIND, GROUPS, group_definition, set_status
from tests.cluster.workloads import deployment, scaled_object

pytestmark = pytest.mark.toolchain

CUSTOM_KIND = {"extraScaleTargets": [{"apiGroup": "test.example.com", "resource": "modelgroups"}]}
BURST = {"targetOngoingRequests": "1", "burstThreshold": "0.5", "delivery": "direct"}
RAY_WORKER_GROUP: Manifest = {"apiVersion": "vllm-scaler.dev/v1alpha1", "kind": "RayWorkerGroup"}
APPLIED = ("capacitybuffers", "podtemplates", "deployments")
"""Applying what is not there takes the right to create it, but the API server's log has it as a patch."""
TARGETS: Mapping[str, Manifest] = {"chat": {}, "code": {"kind": "StatefulSet"}, "group": GROUP_KIND}
"""A target of each kind, by name."""


@pytest.fixture
def release(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[Release]:
    """A release to be installed, where there is a custom kind that can be scaled."""
    keda_cluster.apply(group_definition())
    keda_cluster.wait_for_crds("modelgroups.test.example.com")
    with Release(keda_cluster, keda_namespace) as one:
        yield one


@pytest.fixture
def other_namespace(keda_cluster: KedaCluster) -> Iterator[str]:
    name = keda_cluster.create_namespace()
    yield name
    keda_cluster.kubectl("delete", "namespace", name, "--wait=false")


def running(cluster: KedaCluster, release: Release, replica: int = 0) -> LocalPod:
    pod = release.run(replica)
    cluster.wait_for("a ready scaler", pod.is_ready)
    return pod


def put_to_work(
    cluster: KedaCluster, namespace: str, scaler: LocalPod, *targets: str, metadata: Mapping[str, str] | None = None
) -> None:
    """Targets with one pod each, and one whose trigger is invalid, which is told as an event, twice.

    One more pod of the first waits for a device that no node has.
    """
    cluster.apply(
        *(deployment("chat"), statefulset("code"), deployment("odd", replicas=0), without_node("chat")),
        namespace=namespace,
    )
    if "group" in targets:
        put_group(cluster, namespace)
    cluster.apply(
        *(scaled_object(name, scaler.grpc, metadata, target=TARGETS[name]) for name in targets),
        scaled_object("odd", scaler.grpc, {"headroom": "a lot"}),
        namespace=namespace,
    )
    cluster.wait_for("the event", lambda: "InvalidTrigger" in cluster.kubectl("get", "events", "-n", namespace))
    cluster.apply(scaled_object("chat", scaler.grpc, metadata, maximum=19), namespace=namespace)


def without_node(name: str) -> Manifest:
    container = {"name": "vllm", "image": "vllm", "resources": {"limits": {"test.example.com/device": 1}}}
    metadata = {"name": f"{name}-waits", "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def statefulset(name: str) -> Manifest:
    made = {**deployment(name), "kind": "StatefulSet"}
    return {**made, "spec": {**made["spec"], "serviceName": name}}


def put_group(cluster: KedaCluster, namespace: str) -> None:
    """An object of the custom kind and its pod, as its controller would have them."""
    template = deployment("group")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": "group-0"}}
    group = {**GROUP_KIND, "metadata": {"name": "group"}, "spec": {"replicas": 1}}
    cluster.apply(pod, group, namespace=namespace)
    set_status(cluster, f"{GROUPS.format(namespace)}/group", {"replicas": 1, "selector": "app=group"})


def sees_every_pod(scaler: LocalPod, namespace: str) -> bool:
    """Whether the scaler has decided for every target with its pod ready."""
    with grpc.insecure_channel(scaler.grpc) as channel:
        found = InsightStub(channel).ListTargets(pb.ListTargetsRequest(namespace=namespace), timeout=10.0)
    ready = {target.name for target in found.targets if target.replicas.ready == 1 and not target.unknown_pods}
    return ready == TARGETS.keys()


def check(cluster: KedaCluster, release: Release, *others: str) -> None:
    """Return when every right was used, and no call was made without one, in this test's namespaces."""
    rights = release.rights()
    assert rights
    logged = {right for right in rights if right.verb != "create" or right.resource not in APPLIED}

    def calls() -> list[ApiCall]:
        return [call for call in release.calls() if call.namespace in ("", release.namespace, *others)]

    try:
        cluster.wait_for("a use of every right", lambda: not unused(logged, calls()))
    except TimeoutError:
        assert unused(logged, calls()) == []
    assert without_right(rights, calls()) == []


def test_as_it_is_installed(keda_cluster: KedaCluster, release: Release) -> None:
    release.install()
    scaler = running(keda_cluster, release)
    put_to_work(keda_cluster, release.namespace, scaler, "chat", "code")
    check(keda_cluster, release)


def test_with_namespaces_named_a_standby_and_a_custom_kind(
    keda_cluster: KedaCluster, release: Release, other_namespace: str
) -> None:
    namespaces = [release.namespace, other_namespace]
    standby = {"replicaCount": 2, "leaderElection": {"enabled": True}}
    release.install(yaml.safe_dump({"watchNamespaces": namespaces, **standby, **CUSTOM_KIND}))
    assert all(right.namespace for right in release.rights())
    leader = running(keda_cluster, release)
    other = release.run(1)
    for namespace in namespaces:
        put_to_work(keda_cluster, namespace, leader, *TARGETS)
    assert not other.is_ready()
    keda_cluster.kubectl("delete", "lease", "vllm-scaler", "-n", release.namespace)  # it is made anew
    check(keda_cluster, release, other_namespace)


def test_with_direct_delivery_to_every_kind_and_marks_on_pods(keda_cluster: KedaCluster, release: Release) -> None:
    marks = {"idleFirst": True, "protectBusy": True}
    release.install(yaml.safe_dump({"delivery": {"direct": True}, "removal": marks, **CUSTOM_KIND}))
    scaler = running(keda_cluster, release)
    put_to_work(keda_cluster, release.namespace, scaler, *TARGETS, metadata=BURST)
    with ClusterFleet(keda_cluster, namespace=release.namespace) as fleet:
        keda_cluster.wait_for("a pod of each kind", lambda: sees_every_pod(scaler, release.namespace))
        fleet.send(30)
        check(keda_cluster, release)


KEPT = {"targetOngoingRequests": "1", "warmReplicas": "1"}


@pytest.fixture
def capacity_buffers(keda_cluster: KedaCluster) -> None:
    """CapacityBuffers, on which nobody acts."""
    definitions = toolchain.module_dir("karpenter") / "pkg" / "apis" / "crds"
    keda_cluster.apply_crds(definitions / "autoscaling.x-k8s.io_capacitybuffers.yaml")


def kept(cluster: KedaCluster, namespace: str, kind: str) -> list[str]:
    """What keeps room on nodes."""
    return cluster.kubectl("get", kind, "-n", namespace, "-l", "vllm-scaler.dev/warm", "-o", "name").split()


@pytest.mark.parametrize(("by", "kind"), [("buffer", "capacitybuffers"), ("placeholders", "deployments")])
def test_with_room_on_nodes_for_every_kind(
    keda_cluster: KedaCluster, release: Release, capacity_buffers: None, by: str, kind: str
) -> None:
    release.install(yaml.safe_dump({"warm": {"enabled": True, "by": by}, **CUSTOM_KIND}))
    scaler = running(keda_cluster, release)

    def keep(metadata: Mapping[str, str]) -> None:
        put_to_work(keda_cluster, release.namespace, scaler, *TARGETS, metadata=metadata)

    keep(KEPT)
    keda_cluster.wait_for("room for each", lambda: len(kept(keda_cluster, release.namespace, kind)) == len(TARGETS))
    keep({"targetOngoingRequests": "1"})
    keda_cluster.wait_for("no room", lambda: not kept(keda_cluster, release.namespace, kind))
    check(keda_cluster, release)


@pytest.fixture
def ray_kinds(keda_cluster: KedaCluster) -> Iterator[None]:
    """KubeRay's resources; the scaler's own goes at the end, so that another release may bring it."""
    install_kinds(keda_cluster)
    yield
    keda_cluster.kubectl("delete", "crd", "rayworkergroups.vllm-scaler.dev")


def test_with_ray_worker_groups_and_room_on_nodes(
    keda_cluster: KedaCluster, ray_kinds: None, capacity_buffers: None, release: Release
) -> None:
    release.install("{ray: {enabled: true}, warm: {enabled: true, by: buffer}}")
    scaler = running(keda_cluster, release)

    def rays(metadata: Mapping[str, str]) -> list[Manifest]:
        return [scaled_object(name, scaler.grpc, metadata, target=RAY_WORKER_GROUP) for name in ("llama", "mistral")]

    keda_cluster.apply(
        ray_cluster("llama", replicas=1),
        worker_group("llama"),  # begins with the cluster's count
        ray_service("mistral", replicas=1),
        ray_cluster("mistral-old", replicas=1),
        worker_group("mistral", kind="RayService", replicas=2),
        *rays(KEPT),
        namespace=release.namespace,
    )
    serve_with(keda_cluster, release.namespace, "mistral", active="mistral-old")
    put_to_work(keda_cluster, release.namespace, scaler, "chat", "code", metadata=KEPT)
    keda_cluster.wait_for("room for each", lambda: len(kept(keda_cluster, release.namespace, "capacitybuffers")) == 4)
    keda_cluster.apply(*rays({}), namespace=release.namespace)
    check(keda_cluster, release)


def test_a_right_too_many_and_a_call_too_many_would_be_found() -> None:
    look, patch = Right("list", "", "pods", "serving"), Right("patch", "apps", "deployments/scale", "")
    seen = ApiCall("list", "", "pods", "serving", "", True)
    elsewhere = ApiCall("list", "", "pods", "other", "", True)
    refused = ApiCall("list", "", "pods", "serving", "", False)
    assert unused([look, patch], [seen]) == [patch]
    assert without_right([look, patch], [seen, elsewhere, refused]) == [elsewhere, refused]
