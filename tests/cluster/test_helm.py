"""The chart, installed by helm: what it may do is what the scaler does, and nothing of it is left afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.control_plane import Manifest
from tests.cluster.keda import KedaCluster
from tests.cluster.local_pod import LocalPod
from tests.cluster.programs import ProgramError, wait_for
from tests.cluster.release import Release, objects
from tests.cluster.workload_objects import GROUP_KIND, GROUPS, group_definition, set_status
from tests.cluster.workloads import deployment, scaled_object

pytestmark = pytest.mark.toolchain


@pytest.fixture
def release(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[Release]:
    """A release to be installed in a namespace of its own; what it runs ends with the test."""
    before = set(keda_cluster.programs)
    yield Release(keda_cluster, keda_namespace)
    for name in set(keda_cluster.programs) - before:
        keda_cluster.programs.pop(name).stop()
    if keda_cluster.kubectl("get", "secrets", "-n", keda_namespace, "-l", "owner=helm", "-o", "name"):
        Release(keda_cluster, keda_namespace).uninstall()


@pytest.fixture
def other_namespace(keda_cluster: KedaCluster) -> Iterator[str]:
    name = keda_cluster.create_namespace()
    yield name
    keda_cluster.kubectl("delete", "namespace", name, "--wait=false")


def statefulset(name: str) -> Manifest:
    made = {**deployment(name), "kind": "StatefulSet"}
    return {**made, "spec": {**made["spec"], "serviceName": name}}


def put_to_work(cluster: KedaCluster, namespace: str, pod: LocalPod) -> None:
    """Targets of both built-in kinds, and one whose trigger is invalid, which is told as an event, twice."""
    cluster.apply(deployment("chat"), statefulset("code"), deployment("odd"), namespace=namespace)
    cluster.apply(
        scaled_object("chat", pod.grpc),
        scaled_object("code", pod.grpc, target={"kind": "StatefulSet"}),
        scaled_object("odd", pod.grpc, {"headroom": "a lot"}),
        namespace=namespace,
    )
    cluster.wait_for("the event", lambda: "InvalidTrigger" in cluster.kubectl("get", "events", "-n", namespace))
    cluster.kubectl(
        "patch", "scaledobject", "chat", "-n", namespace, "--type=merge", "-p", '{"spec":{"maxReplicaCount":9}}'
    )


def put_to_work_on_a_custom_kind(cluster: KedaCluster, namespace: str, pod: LocalPod) -> None:
    """A target of a kind that the scaler does not know."""
    cluster.apply({**GROUP_KIND, "metadata": {"name": "group"}, "spec": {"replicas": 1}}, namespace=namespace)
    status = {"replicas": 1, "selector": "app=group"}
    set_status(cluster, GROUPS.format(namespace) + "/group", status)
    cluster.apply(scaled_object("group", pod.grpc, target=GROUP_KIND), namespace=namespace)


def check_rights(cluster: KedaCluster, release: Release) -> None:
    """Waits until every right was used; and no call was made without one."""
    rights = release.rights()
    assert rights

    def all_used() -> bool:
        calls = release.calls()
        return all(any(right.covers(call) for call in calls) for right in rights)

    try:
        cluster.wait_for("a use of every right", all_used)
    except TimeoutError:
        calls = release.calls()
        assert [right for right in rights if not any(right.covers(call) for call in calls)] == []
    calls = release.calls()
    assert [call for call in calls if call.status == 403] == []
    assert [call for call in calls if not any(right.covers(call) for right in rights)] == []


def test_the_scaler_uses_its_rights_and_no_others(keda_cluster: KedaCluster, release: Release) -> None:
    release.install()
    pod = release.run()
    keda_cluster.wait_for("a ready scaler", pod.is_ready)
    put_to_work(keda_cluster, release.namespace, pod)
    check_rights(keda_cluster, release)


def test_with_namespaces_named_a_standby_and_a_custom_kind_it_uses_its_rights_and_no_others(
    keda_cluster: KedaCluster, release: Release, other_namespace: str
) -> None:
    keda_cluster.apply(group_definition())
    keda_cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/modelgroups.test.example.com")
    namespaces = [release.namespace, other_namespace]
    values = {
        "watchNamespaces": namespaces,
        "replicaCount": 2,
        "leaderElection": {"enabled": True},
        "extraScaleTargets": [{"apiGroup": "test.example.com", "resource": "modelgroups"}],
    }
    release.install(yaml.safe_dump(values))
    assert all(right.namespace for right in release.rights())
    leader = release.run(0)
    keda_cluster.wait_for("a leader", leader.is_ready)
    standby = release.run(1)
    for namespace in namespaces:
        put_to_work(keda_cluster, namespace, leader)
        put_to_work_on_a_custom_kind(keda_cluster, namespace, leader)
    assert not standby.is_ready()
    keda_cluster.kubectl("delete", "lease", "vllm-scaler", "-n", release.namespace)  # it is made anew
    check_rights(keda_cluster, release)


def test_an_upgrade_changes_what_the_scaler_runs_with(keda_cluster: KedaCluster, release: Release) -> None:
    release.install("policies: {chat: {headroom: 1}}")
    first = release.run()
    keda_cluster.wait_for("a ready scaler", first.is_ready)
    assert "--shadow" not in first.arguments
    first.program.stop()

    release.upgrade("{policies: {chat: {headroom: 2}, code: {headroom: 3}}, shadow: true}")
    second = release.run()
    keda_cluster.wait_for("a ready scaler", second.is_ready)
    assert "--shadow" in second.arguments
    (option,) = [argument for argument in second.arguments if argument.startswith("--policies=")]
    assert yaml.safe_load(Path(option.partition("=")[2]).read_text()) == {
        "chat": {"headroom": 2},
        "code": {"headroom": 3},
    }


def test_a_bad_policy_ends_the_new_pod_with_a_line_that_names_it(keda_cluster: KedaCluster, release: Release) -> None:
    release.install("policies: {chat: {headroom: plenty}}")
    pod = release.run()
    keda_cluster.programs.pop(pod.program.name)  # it is to end
    wait_for("its end", lambda: pod.program.pid is None, timeout_s=60)
    with pytest.raises(ProgramError, match=r"ended with status 1:\n(.*\n)*.*headroom: 'plenty' is wrong"):
        pod.program.check()


def lease_holder(cluster: KedaCluster, release: Release) -> str:
    lease = cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/{release.namespace}/leases/vllm-scaler")
    assert lease is not None
    holder: str = lease["spec"]["holderIdentity"]
    return holder


EVERYTHING = """
replicaCount: 2
leaderElection: {enabled: true}
policies: {chat: {headroom: 1}}
shadow: true
recording: {enabled: true}
networkPolicy: {egress: {enabled: true}}
"""


def test_an_upgrade_and_an_uninstall_leave_nothing(keda_cluster: KedaCluster, release: Release) -> None:
    before = objects(keda_cluster)
    release.install(EVERYTHING)
    pod = release.run()
    keda_cluster.wait_for("a ready scaler", pod.is_ready)
    holder = lease_holder(keda_cluster, release)
    release.upgrade(f"{EVERYTHING}logLevel: debug")
    assert lease_holder(keda_cluster, release) == holder
    release.upgrade(f"watchNamespaces: [{release.namespace}]")
    kinds = {kind for kind, *_ in objects(keda_cluster) - before}
    assert kinds & {"ConfigMap", "ClusterRole", "ClusterRoleBinding", "Lease"} == set()
    assert {"Role", "RoleBinding", "Deployment", "Service", "ServiceAccount", "NetworkPolicy"} <= kinds
    pod.program.stop()
    release.uninstall()
    try:
        keda_cluster.wait_for("the end of all its objects", lambda: not objects(keda_cluster) - before)
    except TimeoutError:
        assert objects(keda_cluster) - before == set()
