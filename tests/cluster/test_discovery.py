"""Workloads as a real API server tells of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.discovery import KubernetesDiscovery
from scaler.cluster.model import DiscoveryError, Phase, Workload
from scaler.cluster.scaled_objects import OwnAddresses
from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane
from tests.cluster.workload_objects import (
    GROUP_KIND,
    GROUPS,
    OWN_ADDRESS,
    create_pod,
    delete,
    group_definition,
    hpa,
    scaled_object,
    set_status,
    target,
)
from tests.waiting import background, until

pytestmark = pytest.mark.toolchain

OURS = OwnAddresses([OWN_ADDRESS])


def install_kinds(plane: ControlPlane) -> None:
    """KEDA's kinds, and one of a test's own that can be scaled."""
    plane.apply_crds(toolchain.module_dir("keda") / "config" / "crd" / "bases")
    plane.apply(group_definition())
    plane.wait_for_crds("modelgroups.test.example.com")


@pytest.fixture(scope="session")
def plane(api_server: ControlPlane) -> ControlPlane:
    """The shared API server with the kinds that these tests need."""
    install_kinds(api_server)
    return api_server


@asynccontextmanager
async def discovering(kubeconfig: Path, *namespaces: str) -> AsyncIterator[KubernetesDiscovery]:
    async with await ApiClient.connect(kubeconfig) as client:
        discovery = KubernetesDiscovery(client, OURS, namespaces=namespaces)
        async with background(discovery.run()):
            await until(discovery.synced.is_set, "a discovery that has seen everything")
            yield discovery


def names(workload: Workload) -> list[str]:
    return [pod.name for pod in workload.pods]


def reason(discovery: KubernetesDiscovery, namespace: str, name: str) -> str:
    try:
        discovery.workload(namespace, name)
    except DiscoveryError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
async def test_built_in_target_with_its_pods(plane: ControlPlane, namespace: str, kind: str) -> None:
    plane.apply(target(kind, "llama", replicas=2), namespace=namespace)
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "llama"}
    plane.apply(scaled_object("llama", reference, minReplicaCount=1, maxReplicaCount=9), namespace=namespace)
    create_pod(plane, namespace, "llama-0", {"app": "llama"})
    create_pod(plane, namespace, "llama-1", {"app": "llama"}, ready=False)
    create_pod(plane, namespace, "other-0", {"app": "other"})
    async with discovering(plane.kubeconfig, namespace) as discovery:

        def workload() -> Workload:
            return discovery.workload(namespace, "llama")

        assert (workload().requested, workload().minimum, workload().maximum) == (2, 1, 9)
        assert [(pod.name, pod.phase) for pod in workload().pods] == [
            ("llama-0", Phase.READY),
            ("llama-1", Phase.UNSCHEDULABLE),
        ]
        await discovery.patch_scale(namespace, "llama", 5)
        await until(lambda: workload().requested == 5, "the count that was patched")
        delete(plane, f"/api/v1/namespaces/{namespace}/pods/llama-1")
        await until(lambda: names(workload()) == ["llama-0"], "the end of a pod")
        delete(plane, f"/apis/apps/v1/namespaces/{namespace}/{kind.lower()}s/llama")
        await until(lambda: reason(discovery, namespace, "llama").startswith(f"there is no {kind}"), "its end")


async def test_any_kind_with_scale_is_a_target_and_only_leaders_of_groups_count(
    plane: ControlPlane, namespace: str
) -> None:
    path = f"{GROUPS.format(namespace)}/llama"
    plane.apply({**GROUP_KIND, "metadata": {"name": "llama"}, "spec": {"replicas": 2}}, namespace=namespace)
    plane.apply(scaled_object("llama", {**GROUP_KIND, "name": "llama"}), namespace=namespace)
    for group in ("0", "1"):
        for worker in ("0", "1"):
            labels = {"app": "llama", "leaderworkerset.sigs.k8s.io/worker-index": worker}
            create_pod(plane, namespace, f"llama-{group}-{worker}", labels)
    async with discovering(plane.kubeconfig, namespace) as discovery:
        assert "reports no status.selector" in reason(discovery, namespace, "llama")
        set_status(plane, path, {"replicas": 2, "selector": "app=llama"})
        await until(lambda: not reason(discovery, namespace, "llama"), "the selector")
        workload = discovery.workload(namespace, "llama")
        assert (workload.requested, workload.current, names(workload)) == (2, 2, ["llama-0-0", "llama-1-0"])
        await discovery.patch_scale(namespace, "llama", 3)
        await until(lambda: discovery.workload(namespace, "llama").requested == 3, "the count that was patched")


async def test_target_without_scale_is_told(plane: ControlPlane, namespace: str) -> None:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}
    plane.apply(scaled_object("llama", reference), namespace=namespace)
    async with discovering(plane.kubeconfig, namespace) as discovery:
        assert reason(discovery, namespace, "llama").startswith("Job (batch/v1) has no /scale subresource")


async def test_tolerance_is_what_the_api_server_serves(plane: ControlPlane, namespace: str) -> None:
    behavior: dict[str, Any] = {"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "50m"}}
    advanced = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    plane.apply(target("Deployment", "llama", replicas=1), namespace=namespace)
    plane.apply(scaled_object("llama", advanced=advanced), hpa("llama", **behavior), namespace=namespace)
    async with discovering(plane.kubeconfig, namespace) as discovery:
        workload = discovery.workload(namespace, "llama")
        assert (workload.tolerance_up, workload.tolerance_down, workload.warnings) == (0.0, 0.05, ())
        plane.apply(hpa("llama", scaleDown=behavior["scaleDown"]), namespace=namespace)
        await until(lambda: discovery.workload(namespace, "llama").tolerance_up == 0.1, "the tolerance in force")
        (line,) = discovery.workload(namespace, "llama").warnings
        assert "carries no scaleUp tolerance though the ScaledObject asks for 0" in line


async def test_missing_right_is_told_as_the_rule_to_add(plane: ControlPlane, namespace: str) -> None:
    plane.apply(target("Deployment", "llama", replicas=1), namespace=namespace)
    plane.apply(scaled_object("llama"), namespace=namespace)
    kubeconfig = plane.service_account_kubeconfig(namespace, "default")
    rights = {"scaledobjects.keda.sh", "deployments.apps", "horizontalpodautoscalers.autoscaling"}
    plane.kubectl("create", "role", "scaler", "-n", namespace, "--verb=list,watch", f"--resource={','.join(rights)}")
    account = f"--serviceaccount={namespace}:default"
    plane.kubectl("create", "rolebinding", "scaler", "-n", namespace, "--role=scaler", account)
    async with discovering(kubeconfig, namespace) as discovery:
        assert reason(discovery, namespace, "llama") == (
            f"system:serviceaccount:{namespace}:default may not list pods in namespace {namespace}: a Role or "
            'ClusterRole with the rule {apiGroups: [""], resources: ["pods"], verbs: ["list"]} is missing'
        )


async def test_watches_go_on_after_the_api_server_was_away() -> None:
    with ControlPlane() as plane:
        install_kinds(plane)
        namespace = plane.create_namespace()
        plane.apply(target("Deployment", "llama", replicas=1), scaled_object("llama"), namespace=namespace)
        create_pod(plane, namespace, "llama-0", {"app": "llama"})
        async with discovering(plane.kubeconfig) as discovery:

            def age() -> float:
                return time.time() - discovery.workload(namespace, "llama").seen_at

            await until(lambda: age() < 0.1, "a view of now")
            server = plane.programs["kube-apiserver"]
            server.stop()
            await until(lambda: age() > 1.0, "a view that ages")
            assert names(discovery.workload(namespace, "llama")) == ["llama-0"]
            server.start()
            await until(plane.is_ready, "the API server")
            create_pod(plane, namespace, "llama-1", {"app": "llama"})
            await until(lambda: names(discovery.workload(namespace, "llama")) == ["llama-0", "llama-1"], "the new pod")
            await until(lambda: age() < 0.1, "a view of now")
