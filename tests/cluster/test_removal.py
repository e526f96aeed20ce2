"""A scale-down with the real ReplicaSet controller: it takes idle pods, and pods that work are protected meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from scaler.cluster.pod_marks import AUTOSCALER, DELETION_COST, KARPENTER, OURS
from tests.cluster.keda import KedaCluster
from tests.cluster.role import POLICIES, Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

PROTECTED = {KARPENTER: "true", AUTOSCALER: "false"}
READER = "reads-everything"


@contextmanager
def marking(cluster: KedaCluster, namespace: str, kubeconfig: Path | None = None) -> Iterator[Stage]:
    """A stage whose scaler is to mark pods; it is the administrator unless its kubeconfig says otherwise."""
    options = ("--idle-first", "--protect-busy")
    with (
        ScalerProcess(cluster, POLICIES, *options, kubeconfig=kubeconfig) as scaler,
        Stage(cluster, namespace, scaler) as stage,
    ):
        yield stage


def busy(model: Model) -> set[str]:
    """The pods with requests in them."""
    return {pod.name for pod in model.fleet.pods() if pod.running + pod.waiting}


def works(model: Model, pods: int) -> bool:
    return len(busy(model)) == pods


def has(model: Model, pods: int) -> bool:
    return len(model.pods()) == pods


def marks(stage: Stage, model: Model) -> dict[str, dict[str, str]]:
    """The annotations of every pod that carries marks of the scaler."""
    path = f"/api/v1/namespaces/{stage.namespace}/pods?labelSelector=app={model.name}"
    pods = [pod["metadata"] for pod in (stage.cluster.get(path) or {})["items"]]
    return {pod["name"]: pod["annotations"] for pod in pods if OURS in pod["annotations"]}


def test_of_eight_pods_the_three_that_are_busy_stay_and_no_request_is_lost(
    keda_cluster: KedaCluster, keda_namespace: str
) -> None:
    with marking(keda_cluster, keda_namespace) as stage:
        # Three times over: by chance alone the three would stay once in 56 times.
        models = stage.play(*(Role(name=f"chat-{i}", replicas=8, users=8) for i in range(3)))
        for model in models:
            model.users = 3
        for model in models:
            stage.wait_for(f"three pods of {model.name} at work", partial(works, model, 3))
        working = {model.name: (busy(model), len(model.fleet.outcomes())) for model in models}
        for model in models:
            model.goes(8, 3)
            stage.wait_for(f"three pods of {model.name}", partial(has, model, 3))
        for model in models:
            pods, ended = working[model.name]
            assert set(model.pods()) == pods == busy(model)
            assert len(model.fleet.outcomes()) == ended  # a pod goes at once, and would have taken its request along
            found = marks(stage, model)
            assert found.keys() == pods
            assert all(DELETION_COST in each and PROTECTED.items() <= each.items() for each in found.values())


@pytest.fixture
def reader(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[str]:
    """A ServiceAccount that may see everything and change nothing."""
    account = {"kind": "ServiceAccount", "name": READER, "namespace": keda_namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    kinds = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": READER}}
    keda_cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": READER}},
        {**kinds, "kind": "ClusterRole", "rules": rules},
        {**kinds, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [account]},
        namespace=keda_namespace,
    )
    yield READER
    keda_cluster.kubectl("delete", "clusterrolebinding,clusterrole", READER)


def test_without_the_right_to_mark_pods_the_scaler_says_so_and_scales_all_the_same(
    keda_cluster: KedaCluster, keda_namespace: str, reader: str
) -> None:
    kubeconfig = keda_cluster.service_account_kubeconfig(keda_namespace, reader)
    with marking(keda_cluster, keda_namespace, kubeconfig) as stage:
        (model,) = stage.play(Role(name="chat", replicas=4, users=3))
        model.goes(4, 3)
        told = model.explain()
        assert told is not None
        (warning,) = told.warnings
        assert warning.startswith("pods are not marked: ")
        assert '{apiGroups: [""], resources: ["pods"], verbs: ["patch"]}' in warning
        assert marks(stage, model) == {}
