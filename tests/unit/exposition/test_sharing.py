"""Queues of Ray Serve are on the nodes that route: one page that shows them is enough for all pages of a target."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scaler.exposition import ENGINES
from scaler.exposition.sample import Sample
from scaler.exposition.sharing import shared
from tests.unit.targets.world import page

QUEUE = 'ray_serve_deployment_queued_queries{application="llm",deployment="Engine",handle="h",WorkerId="p"}'
REPLICA = 'ray_serve_replica_processing_queries{application="llm",deployment="Engine",replica="r",WorkerId="r"}'
ENGINE = 'ray_vllm_num_requests_{}{{ReplicaId="r",WorkerId="r",engine="0"}}'


def node(*lines: str) -> Sample:
    return ENGINES["ray"].read("\n".join((*lines, "")).encode())


def numbers(samples: Mapping[str, Sample]) -> dict[str, tuple[float | None, float | None]]:
    return {pod: (sample.waiting, sample.running) for pod, sample in shared(samples).items()}


def test_a_node_without_a_router_adds_no_queue_where_another_has_one() -> None:
    nodes = {"a": node(f"{QUEUE} 7", f"{REPLICA} 2"), "b": node(f"{REPLICA} 3")}
    assert numbers(nodes) == {"a": (7, 2), "b": (0, 3)}


def test_a_node_without_replicas_adds_nothing_that_runs() -> None:
    nodes = {"a": node(f"{QUEUE} 7"), "b": node(f"{REPLICA} 3")}
    assert numbers(nodes) == {"a": (7, 0), "b": (0, 3)}


def test_engines_of_a_node_without_a_router_keep_their_own_queue() -> None:
    engine = (ENGINE.format("waiting") + " 5", ENGINE.format("running") + " 4")
    nodes = {"a": node(f"{QUEUE} 7", f"{REPLICA} 2"), "b": node(f"{REPLICA} 9", *engine)}
    assert numbers(nodes) == {"a": (7, 2), "b": (5, 4)}


def test_a_queue_that_no_node_shows_stays_unknown() -> None:
    nodes = {"a": node(f"{REPLICA} 2"), "b": node(f"{REPLICA} 3")}
    assert numbers(nodes) == {"a": (None, 2), "b": (None, 3)}
    assert "waiting" in shared(nodes)["a"].unknown


def test_a_queue_that_cannot_be_read_stays_unknown() -> None:
    nodes = {"a": node(f"{QUEUE} 7", f"{REPLICA} 2"), "b": node(f"{QUEUE} many", f"{REPLICA} 3")}
    assert numbers(nodes) == {"a": (7, 2), "b": (None, 3)}


@pytest.mark.parametrize("other", [page(3, 8), Sample(engine="vllm", running=4.0, unknown={"waiting": "bad"})])
def test_pages_of_other_engines_neither_give_nor_take(other: Sample) -> None:
    nodes = {"a": node(f"{REPLICA} 2"), "b": other}
    assert shared(nodes) == nodes
