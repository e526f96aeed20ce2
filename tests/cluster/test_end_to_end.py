"""The whole way on a real cluster: load on vLLM pods, the scaler as the chart installs it, KEDA, the HPA, new pods."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from inference.simulated import Verdict
from tests.cluster.fleet import ClusterFleet
from tests.cluster.keda import KedaCluster
from tests.cluster.local_pod import LocalPod
from tests.cluster.release import Release
from tests.cluster.workloads import deployment, scaled_object

pytestmark = pytest.mark.toolchain

NAME = "llama"
FOUR_EACH = {
    "targetOngoingRequests": "4",
    "smoothingFactor": "1",
    "lookAhead": "0",
    "upscaleDelay": "0",
    "downscaleLimit": "100/1s",
}
"""Four requests a replica, without looking ahead: the count is known beforehand."""


@pytest.fixture
def scaler(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[LocalPod]:
    """A ready scaler that serves the test's namespace."""
    with Release(keda_cluster, keda_namespace) as release:
        release.install(f"watchNamespaces: [{keda_namespace}]")
        pod = release.run()
        keda_cluster.wait_for("a ready scaler", pod.is_ready)
        yield pod


@pytest.fixture
def fleet(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[ClusterFleet]:
    """vLLM in every pod of the Deployment, one at first."""
    keda_cluster.apply(deployment(NAME, drain="24h"), namespace=keda_namespace)
    with ClusterFleet(keda_cluster, f"app={NAME}", namespace=keda_namespace) as playing:
        keda_cluster.wait_for("the first pod", playing.pods)
        yield playing


def requested(cluster: KedaCluster, namespace: str) -> int:
    """`spec.replicas` of the Deployment."""
    scale = cluster.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}/scale")
    assert scale is not None
    count: int = scale["spec"].get("replicas", 0)
    return count


def test_replicas_follow_the_requests_up_at_once_and_down_after_the_delay(
    keda_cluster: KedaCluster, keda_namespace: str, scaler: LocalPod, fleet: ClusterFleet
) -> None:
    keda_cluster.apply(
        scaled_object(NAME, scaler.grpc, {**FOUR_EACH, "downscaleDelay": "20s"}), namespace=keda_namespace
    )
    fleet.send(40)
    keda_cluster.wait_for("10 replicas", lambda: requested(keda_cluster, keda_namespace) == 10)
    keda_cluster.wait_for("10 played pods", lambda: len(fleet.pods()) == 10)

    began = time.monotonic()
    fleet.hang_up()
    keda_cluster.wait_for("1 replica", lambda: requested(keda_cluster, keda_namespace) == 1, timeout_s=120)
    assert time.monotonic() - began >= 20  # never earlier; how much later is up to the HPA and the machine
    keda_cluster.wait_for("1 played pod", lambda: len(fleet.pods()) == 1)


def test_without_any_numbers_replicas_follow_the_traffic(
    keda_cluster: KedaCluster, keda_namespace: str, scaler: LocalPod, fleet: ClusterFleet
) -> None:
    quickly_down = {"downscaleDelay": "5s", "downscaleLimit": "100%/15s"}
    keda_cluster.apply(scaled_object(NAME, scaler.grpc, quickly_down), namespace=keda_namespace)
    fleet.offer(40)
    keda_cluster.wait_for("more replicas", lambda: requested(keda_cluster, keda_namespace) >= 3, timeout_s=180)
    fleet.offer(0)
    keda_cluster.wait_for("one replica", lambda: requested(keda_cluster, keda_namespace) == 1, timeout_s=180)
    verdicts = {outcome.verdict for outcome in fleet.outcomes()}
    assert verdicts == {Verdict.SERVED}  # on the way up and down no request was refused or lost
