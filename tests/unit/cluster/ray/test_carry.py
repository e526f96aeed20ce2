from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.cluster.model import Phase
from scaler.cluster.ray.carry import patch, wish
from scaler.cluster.ray.model import BridgeError, RayObject, Worker
from tests.unit.cluster.ray.world import a_cluster, a_service, spec_of, worker

TEST = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
AT = "/spec/workerGroupSpecs/0"


def carried(
    obj: RayObject, wanted: int, *workers: Worker, load: Mapping[str, float] | None = None, widen: bool = False
) -> dict[str, Any]:
    """What a patch sets, by path; its guard is checked here."""
    wished = wish(obj, spec_of(obj), wanted, widen=widen)
    operations = patch(obj, spec_of(obj), wished, workers, lambda: load or {})
    if not operations:
        return {}
    guard, *changes = operations
    assert guard == TEST
    assert {change["op"] for change in changes} == {"add"}
    return {change["path"]: change["value"] for change in changes}


def test_more_replicas_are_one_number() -> None:
    assert carried(a_cluster(replicas=2), 5, worker("a"), worker("b")) == {f"{AT}/replicas": 5}


def test_nothing_is_written_where_everything_is_as_it_should_be() -> None:
    assert carried(a_cluster(replicas=2), 2, worker("a"), worker("b")) == {}


def test_fewer_replicas_name_their_victims_in_the_same_patch() -> None:
    workers = (worker("a", created=1), worker("b", created=2))
    assert carried(a_cluster(replicas=2), 1, *workers, load={"a": 0, "b": 3}) == {
        f"{AT}/replicas": 1,
        f"{AT}/scaleStrategy": {"workersToDelete": ["a"]},
    }
    assert carried(a_cluster(replicas=2, named=[]), 1, *workers, load={"a": 0, "b": 3}) == {
        f"{AT}/replicas": 1,
        f"{AT}/scaleStrategy/workersToDelete": ["a"],
    }


def test_the_list_stays_while_a_pod_of_it_is_there_and_is_cleared_afterwards() -> None:
    cluster = a_cluster(replicas=1, named=["a"])
    assert carried(cluster, 1, worker("a"), worker("b")) == {}
    assert carried(cluster, 1, worker("a", phase=Phase.TERMINATING), worker("b")) == {}
    assert carried(cluster, 1, worker("b")) == {f"{AT}/scaleStrategy/workersToDelete": []}


def test_a_pod_that_somebody_else_deleted_is_named_too_lest_another_one_goes() -> None:
    workers = (worker("a", phase=Phase.TERMINATING), worker("b"), worker("c"))
    assert carried(a_cluster(replicas=3, named=[]), 2, *workers) == {
        f"{AT}/replicas": 2,
        f"{AT}/scaleStrategy/workersToDelete": ["a"],
    }


def test_a_victim_is_spared_when_the_count_rises_again_in_time() -> None:
    cluster = a_cluster(replicas=1, named=["a"])
    assert carried(cluster, 2, worker("a"), worker("b")) == {
        f"{AT}/replicas": 2,
        f"{AT}/scaleStrategy/workersToDelete": [],
    }


def test_hosts_count_as_one_replica() -> None:
    workers = [worker(f"{replica}-{host}", replica=replica) for replica in ("a", "b") for host in (0, 1)]
    load = {"a-0": 1.0, "a-1": 0.0, "b-0": 0.0, "b-1": 0.0}
    assert carried(a_cluster(replicas=2, hosts=2, named=[]), 1, *workers, load=load) == {
        f"{AT}/replicas": 1,
        f"{AT}/scaleStrategy/workersToDelete": ["b-0", "b-1"],
    }


def test_under_rays_own_autoscaler_the_floor_is_written_and_no_victim_named() -> None:
    cluster = a_cluster(replicas=5, minReplicas=2, enableInTreeAutoscaling=True)
    assert carried(cluster, 3, *(worker(name) for name in "abcde")) == {f"{AT}/minReplicas": 3}
    assert carried(cluster, 1, *(worker(name) for name in "abcde")) == {f"{AT}/minReplicas": 1}
    assert carried(cluster, 2) == {}


def test_a_service_gets_the_number_where_it_describes_its_cluster() -> None:
    assert carried(a_service(replicas=2), 1, worker("a"), worker("b")) == {
        "/spec/rayClusterConfig/workerGroupSpecs/0/replicas": 1
    }


@pytest.mark.parametrize(
    ("wanted", "count", "limit"),
    [(1, 2, "below minReplicas 2"), (9, 8, "above maxReplicas 8"), (2, 2, ""), (8, 8, "")],
)
def test_the_groups_limits_hold_and_are_told(wanted: int, count: int, limit: str) -> None:
    cluster = a_cluster(minReplicas=2, maxReplicas=8)
    wished = wish(cluster, spec_of(cluster), wanted, widen=False)
    assert wished.count == count
    assert limit in wished.limit
    assert bool(wished.limit) is bool(limit)


def test_the_groups_limits_give_way_where_told_so() -> None:
    assert carried(a_cluster(replicas=5, minReplicas=2, maxReplicas=8), 12, widen=True) == {
        f"{AT}/maxReplicas": 12,
        f"{AT}/replicas": 12,
    }
    assert carried(a_cluster(replicas=5, minReplicas=2, maxReplicas=8), 1, widen=True) == {
        f"{AT}/minReplicas": 1,
        f"{AT}/replicas": 1,
    }


def test_limits_that_exclude_every_count_are_told() -> None:
    cluster = a_cluster(minReplicas=5, maxReplicas=2)
    with pytest.raises(BridgeError, match=r"has minReplicas 5 above maxReplicas 2: correct them"):
        wish(cluster, spec_of(cluster), 3, widen=False)


class KubeRay:
    """What KubeRay 1.5 does to a group when its own autoscaler is off: named pods go; then it makes up the difference
    to all others, those on their way out included, and of a surplus deletes whichever comes first.
    """

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self.named: list[str] = []
        self.leaving: dict[str, bool] = {f"w{i}": False for i in range(replicas)}
        self.made = replicas
        self.unasked: list[str] = []

    def workers(self) -> list[Worker]:
        return [
            worker(name, phase=Phase.TERMINATING if leaving else Phase.READY, created=float(name[1:]))
            for name, leaving in self.leaving.items()
        ]

    def bridge(self, wanted: int, load: Mapping[str, float]) -> None:
        sets = carried(a_cluster(replicas=self.replicas, named=self.named), wanted, *self.workers(), load=load)
        self.replicas = sets.get(f"{AT}/replicas", self.replicas)
        self.named = sets.get(f"{AT}/scaleStrategy/workersToDelete", self.named)

    def reconcile(self) -> None:
        for name in self.named:
            if name in self.leaving:
                self.leaving[name] = True
        others = [name for name in self.leaving if name not in self.named]
        for name in others[: max(0, len(others) - self.replicas)]:
            self.unasked += [] if self.leaving[name] else [name]
            self.leaving[name] = True
        for _ in range(self.replicas - len(others)):
            self.leaving[f"w{self.made}"] = False
            self.made += 1

    def end(self, name: str) -> None:
        if self.leaving.get(name):
            del self.leaving[name]

    @property
    def staying(self) -> int:
        return sum(not leaving for leaving in self.leaving.values())


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("want"), st.integers(0, 8)),
        st.tuples(st.just("reconcile"), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 12)),
        st.tuples(st.just("delete"), st.integers(0, 12)),
    ),
    max_size=30,
)


@given(start=st.integers(0, 8), steps=STEPS, busy=st.integers(0, 12))
def test_kuberay_never_takes_a_worker_that_was_not_chosen(
    start: int, steps: Sequence[tuple[str, int]], busy: int
) -> None:
    kuberay, wanted = KubeRay(start), start
    load = {f"w{i}": float(i == busy) for i in range(40)}
    for step, number in steps:
        match step:
            case "want":
                wanted = number
            case "reconcile":
                kuberay.reconcile()
            case "end":
                kuberay.end(f"w{number}")
            case "delete" if f"w{number}" in kuberay.leaving:  # by a node that is drained, say
                kuberay.leaving[f"w{number}"] = True
        kuberay.bridge(wanted, load)
    assert kuberay.unasked == []
    for _ in range(3):
        kuberay.reconcile()
        for name in list(kuberay.leaving):
            kuberay.end(name)
        kuberay.bridge(wanted, load)
    assert kuberay.staying == wanted
    assert kuberay.unasked == []
    assert kuberay.named == []
