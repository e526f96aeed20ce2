"""The chart, installed, changed and taken away by helm: it runs the scaler as it says, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.keda import KedaCluster
from tests.cluster.programs import ProgramError, wait_for
from tests.cluster.release import Release, objects

pytestmark = pytest.mark.toolchain


@pytest.fixture
def release(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[Release]:
    """A release to be installed."""
    with Release(keda_cluster, keda_namespace) as one:
        yield one


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
    keda_cluster.programs.pop(pod.program.name)  # it is to end, and no other wait is to fail for that
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
