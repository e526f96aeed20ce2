from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from scaler.cluster.model import Phase
from scaler.cluster.ray.model import Worker
from scaler.cluster.ray.victims import choose, replicas
from tests.unit.cluster.ray.world import worker

OLD, NEW = worker("old", created=1.0), worker("new", created=2.0)
LOADING = worker("loading", phase=Phase.STARTING, created=0.0)
HOMELESS = worker("homeless", phase=Phase.UNSCHEDULABLE, created=0.0)
GOING = worker("going", phase=Phase.TERMINATING)


def order(workers: Sequence[Worker], load: Mapping[str, float], named: Sequence[str] = ()) -> list[str]:
    chosen = choose(replicas(workers, 1), len(workers), load, named)
    return [name for replica in chosen for name in replica.names]


@pytest.mark.parametrize(
    ("workers", "load", "expected"),
    [
        ([OLD, NEW], {"old": 0, "new": 3}, ["old", "new"]),
        ([OLD, NEW], {"old": 2, "new": 3}, ["old", "new"]),
        ([OLD, NEW], {"old": 0, "new": 0}, ["new", "old"]),
        ([OLD, NEW, LOADING], {"old": 0, "new": 0}, ["loading", "new", "old"]),
        ([OLD, HOMELESS], {"old": 0}, ["homeless", "old"]),
        ([OLD, NEW], {"old": 9}, ["old", "new"]),
        ([OLD, NEW], {}, ["new", "old"]),
        ([OLD, GOING], {"old": 0, "going": 0}, ["old"]),
    ],
    ids=[
        "an idle worker before a busy one",
        "the least busy first",
        "the newest of equals",
        "one that loads before any that serves",
        "one that no node has room for",
        "an unknown worker is not an idle one",
        "all unknown: the newest",
        "one on its way out is not chosen again",
    ],
)
def test_those_go_first_that_lose_the_least(workers: list[Worker], load: dict[str, float], expected: list[str]) -> None:
    assert order(workers, load) == expected


def test_what_was_named_before_goes_though_another_is_idle_by_now() -> None:
    assert order([OLD, NEW], {"old": 5, "new": 0}, named=["old"])[0] == "old"


def test_no_surplus_costs_nobody() -> None:
    assert choose(replicas([OLD, NEW], 1), 0, {}) == []
    assert choose(replicas([OLD, NEW], 1), -3, {}) == []


def test_hosts_of_a_replica_go_together_and_its_load_is_theirs() -> None:
    hosts = [worker(f"{replica}-{host}", replica=replica) for replica in ("a", "b") for host in (0, 1)]
    load = {"a-0": 0.0, "a-1": 4.0, "b-0": 1.0, "b-1": 1.0}
    (gone,) = choose(replicas(hosts, 2), 1, load)
    assert gone.names == {"b-0", "b-1"}


def test_the_host_that_is_read_speaks_for_its_replica() -> None:
    hosts = [worker(f"{replica}-{host}", replica=replica) for replica in ("a", "b", "c") for host in (0, 1)]
    order = choose(replicas(hosts, 2), 3, {"a-0": 2.0, "b-0": 0.0})
    assert [min(replica.names) for replica in order] == ["b-0", "a-0", "c-0"]


def test_a_replica_with_a_host_on_its_way_out_goes_as_a_whole() -> None:
    hosts = [worker("a-0", replica="a", phase=Phase.TERMINATING), worker("a-1", replica="a")]
    (replica,) = replicas(hosts, 2)
    assert not replica.stays


def test_hosts_that_do_not_say_where_they_belong_are_counted_in_the_order_of_their_creation() -> None:
    hosts = [worker(str(i), created=float(i)) for i in range(4)]
    going = worker("going", created=1.5, phase=Phase.TERMINATING)
    assert [sorted(replica.names) for replica in replicas([*hosts, going], 2)] == [["0", "1"], ["2", "3"], ["going"]]
