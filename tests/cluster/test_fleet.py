"""The fleet on a cluster: pods of a real API server, each with its own address, answer as vLLM does."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from inference.simulated import Fault, Verdict
from inference.simulated.traffic import Lengths, RequestClass
from tests.cluster.cluster import Cluster
from tests.cluster.fleet import ClusterFleet, Played
from tests.cluster.workloads import deployment

pytestmark = pytest.mark.toolchain

SHORT = RequestClass("short", Lengths(100), Lengths(10))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def place(cluster: Cluster) -> Iterator[str]:
    name = cluster.create_namespace()
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def scale(cluster: Cluster, namespace: str, name: str, replicas: int) -> None:
    cluster.kubectl("scale", "-n", namespace, f"deployment/{name}", f"--replicas={replicas}")


def played(cluster: Cluster, fleet: ClusterFleet, count: int) -> list[Played]:
    """The pods once so many are played."""
    return cluster.wait_for(f"{count} played pods", lambda: pods if len(pods := fleet.pods()) == count else None)


def page(pod: Played) -> str:
    return httpx.get(f"http://{pod.address}/metrics", trust_env=False).raise_for_status().text


def test_a_ready_pod_serves_its_own_page_at_its_own_address(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("llama", replicas=3), namespace=place)
    with ClusterFleet(cluster, "app=llama", namespace=place) as fleet:
        pods = played(cluster, fleet, 3)
        assert len({pod.address for pod in pods}) == 3
        assert {pod.name for pod in pods} == set(cluster.ready_pods(place))
        fleet.send(2)
        running = sorted(line for pod in fleet.pods() for line in page(pod).splitlines() if "requests_running{" in line)
        assert [line.rpartition(" ")[2] for line in running] == ["0.0", "1.0", "1.0"]


def test_a_pod_that_starts_is_not_there_yet(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("quick"), deployment("endless", startup="24h"), namespace=place)
    with ClusterFleet(cluster, namespace=place) as fleet:
        (pod,) = played(cluster, fleet, 1)
        assert pod.name.startswith("quick-")


def test_a_deleted_pod_takes_nothing_new_and_finishes_its_own(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("llama", drain="24h"), namespace=place)
    with ClusterFleet(cluster, "app=llama", namespace=place) as fleet:
        (first,) = played(cluster, fleet, 1)
        fleet.send(1, output_tokens=100)
        scale(cluster, place, "llama", 0)
        cluster.wait_for("the end of the drain", lambda: not fleet.pods())
        fleet.send(1)
        verdicts = [(outcome.verdict, outcome.pod is None) for outcome in fleet.outcomes()]
        assert verdicts == [(Verdict.SERVED, False), (Verdict.REFUSED, True)]
        with pytest.raises(httpx.ConnectError):
            page(first)


def test_what_a_pod_has_left_when_it_is_killed_is_lost(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("llama", drain="24h"), namespace=place)
    with ClusterFleet(cluster, "app=llama", namespace=place) as fleet:
        (pod,) = played(cluster, fleet, 1)
        fleet.send(3)
        cluster.kubectl("delete", "pod", "-n", place, pod.name, "--grace-period=0", "--force")
        cluster.wait_for("three lost requests", lambda: len(fleet.outcomes()) == 3)
        assert {outcome.verdict for outcome in fleet.outcomes()} == {Verdict.LOST}
        assert played(cluster, fleet, 1) != [pod]


def test_requests_come_at_the_rate_that_is_offered_and_end_with_it(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("llama"), namespace=place)
    with ClusterFleet(cluster, "app=llama", namespace=place) as fleet:
        played(cluster, fleet, 1)
        fleet.offer(50, kind=SHORT)
        cluster.wait_for("served requests", lambda: len(fleet.outcomes()) > 5)
        fleet.offer(0)
        fleet.hang_up()
        assert [(pod.running, pod.waiting) for pod in fleet.pods()] == [(0, 0)]


def test_a_fault_is_one_pods_own_until_it_is_taken_away(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("llama", replicas=2), namespace=place)
    with ClusterFleet(cluster, "app=llama", namespace=place) as fleet:
        bad, good = played(cluster, fleet, 2)
        fleet.fail(Fault.EMPTY, bad.name)
        assert (page(bad), bool(page(good))) == ("", True)
        fleet.fail(None)
        assert page(bad)
        with pytest.raises(ValueError, match="no such pods are played: x"):
            fleet.fail(Fault.HUNG, "x")


def test_the_fleet_goes_on_while_the_api_server_is_away(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("llama"), namespace=place)
    with ClusterFleet(cluster, "app=llama", namespace=place) as fleet:
        (pod,) = played(cluster, fleet, 1)
        api_server = cluster.programs["kube-apiserver"]
        api_server.stop()
        assert page(pod)
        api_server.start()
        cluster.wait_for("the API server again", cluster.is_ready)
        scale(cluster, place, "llama", 2)
        assert pod in played(cluster, fleet, 2)


def test_hundreds_of_pods_are_played(cluster: Cluster, place: str) -> None:
    cluster.apply(deployment("llama", replicas=300), namespace=place)
    with ClusterFleet(cluster, "app=llama", namespace=place) as fleet:
        pods = played(cluster, fleet, 300)
        assert all("vllm:num_requests_running" in page(pod) for pod in pods[::30])
        scale(cluster, place, "llama", 0)
        cluster.wait_for("no pods", lambda: not fleet.pods())
