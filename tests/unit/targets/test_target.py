"""One target's loop: what it sees, decides, remembers and answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from scaler.cluster.model import Phase
from scaler.sources.source import Unknown
from scaler.sources.turns import A_TURN
from scaler.targets import Stale, TargetState, story
from tests.unit.targets.world import SIMPLE, Scene, page, pod


async def test_a_queue_on_the_pages_becomes_a_higher_answer() -> None:
    scene = Scene()
    target = scene.target()
    scene.everywhere(page(waiting=10, running=10))
    await scene.tick(target)
    assert target.answer() == 4.0
    assert target.state is TargetState.ACTIVE
    assert target.active


async def test_before_the_first_tick_there_is_no_answer_and_no_activity() -> None:
    target = Scene().target()
    assert target.state is TargetState.WAITING
    with pytest.raises(Stale, match="no decision yet"):
        target.answer()
    with pytest.raises(Stale):
        _ = target.active


async def test_an_unknown_pod_is_not_an_idle_pod() -> None:
    scene = Scene(pods=[pod("a"), pod("b"), pod("c")])
    scene.pages = {"a": page(0, 10), "b": page(0, 10), "c": Unknown("timed out after 0.8 s")}
    target = scene.target({**SIMPLE, "downscaleDelay": "0"})
    await scene.tick(target, 5)
    assert target.answer() == 3.0
    assert "1 pod unknown" in story(target, target.latest)  # type: ignore[arg-type]


async def test_when_no_pod_can_be_read_the_answer_goes_stale_and_says_why() -> None:
    scene = Scene()
    scene.everywhere(page(0, 10))
    target = scene.target({**SIMPLE, "staleness": "10s"})
    await scene.tick(target)
    scene.everywhere(Unknown("connection refused"))
    await scene.tick(target, 9)
    assert target.answer() == 2.0
    await scene.tick(target, 5)
    assert target.state is TargetState.STALE
    with pytest.raises(Stale, match="connection refused"):
        target.answer()
    scene.everywhere(page(0, 10))
    await scene.tick(target)
    assert target.answer() == 2.0


@pytest.mark.parametrize(("minimum", "idle"), [(0, None), (1, 0)], ids=["minReplicaCount 0", "idleReplicaCount 0"])
async def test_where_keda_may_go_to_zero_by_itself_pods_that_cannot_be_read_are_a_hold_and_no_refusal(
    minimum: int, idle: int | None
) -> None:
    scene = Scene(minimum=minimum, idle=idle)
    scene.everywhere(page())
    target = scene.target({**SIMPLE, "staleness": "10s"})
    await scene.tick(target)
    scene.everywhere(Unknown("connection refused"))
    await scene.tick(target, 20)
    assert target.state is TargetState.STALE
    assert (target.answer(), target.active) == (2.0, True)
    scene.seen_ago_s = 100.0
    await scene.tick(target, 11)
    with pytest.raises(Stale, match="cluster was last seen"):
        target.answer()


async def test_a_cluster_that_was_not_seen_for_long_stops_decisions() -> None:
    scene = Scene()
    target = scene.target()
    scene.everywhere(page(0, 15))
    await scene.tick(target)
    scene.seen_ago_s = 100.0
    scene.everywhere(page())
    await scene.tick(target, 30)
    with pytest.raises(Stale, match="cluster was last seen 100s ago"):
        target.answer()
    assert target.latest is not None
    assert target.latest.decision.desired == 3


async def test_a_target_that_cannot_be_discovered_says_what_is_missing() -> None:
    scene = Scene(missing="Deployment ns/llama does not exist")
    target = scene.target()
    await scene.tick(target)
    with pytest.raises(Stale, match="does not exist"):
        target.answer()
    assert target.reason == "Deployment ns/llama does not exist"


async def test_terminating_and_starting_pods_are_not_asked() -> None:
    scene = Scene(pods=[pod("a"), pod("t", Phase.TERMINATING), pod("s", Phase.STARTING)])
    scene.everywhere(page())
    await scene.tick(target := scene.target())
    assert [endpoint.pod for endpoint in scene.asked] == ["a"]
    assert target.latest is not None
    replicas = target.latest.observation.replicas
    assert (replicas.ready, replicas.starting, replicas.terminating) == (1, 1, 1)


async def test_replicas_that_have_no_pod_yet_count_as_starting() -> None:
    scene = Scene(requested=5)
    await scene.tick(target := scene.target())
    assert target.latest is not None
    assert target.latest.observation.replicas.starting == 3


@pytest.mark.parametrize(
    ("ports", "metadata", "expected"),
    [
        ({}, {}, 8000),
        ({"http": 8080}, {}, 8080),
        ({"http": 8080, "metrics": 9100}, {}, 9100),
        ({"grpc": 50051}, {}, 8000),
        ({"metrics": 9100}, {"metricsPort": "7000"}, 7000),
    ],
)
async def test_the_port_is_the_configured_one_or_the_one_that_is_named_so(
    ports: dict[str, int], metadata: dict[str, str], expected: int
) -> None:
    scene = Scene(pods=[pod("a", ports=ports)])
    scene.everywhere(page())
    await scene.tick(scene.target({**SIMPLE, **metadata}))
    assert scene.asked[0].port == expected


async def test_shadow_mode_decides_but_answers_the_present_count() -> None:
    scene = Scene()
    target = scene.target(shadow=True)
    scene.everywhere(page(50, 50))
    await scene.tick(target)
    assert target.answer() == 2.0
    assert target.latest is not None
    assert target.latest.decision.desired == 20
    assert "shadow" in story(target, target.latest)


async def test_a_sleeping_engine_is_unknown_not_idle() -> None:
    scene = Scene()
    scene.everywhere(replace(page(), asleep=True))
    await scene.tick(target := scene.target())
    assert target.latest is not None
    assert len(target.latest.observation.load.unknown) == 2


async def test_pods_that_no_node_takes_block_the_target_until_one_does() -> None:
    message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    scene = Scene()
    waits_since = scene.clock.utc() - 890.0
    scene.pods.append(pod("p", Phase.UNSCHEDULABLE, waits_since, reason=message))
    scene.everywhere(page(waiting=10, running=10))
    await scene.tick(target := scene.target())
    assert target.state is TargetState.ACTIVE
    assert target.latest is not None
    assert target.latest.observation.replicas.lacks == "nvidia.com/gpu"
    wanted = target.latest.decision.desired
    await scene.tick(target, 9)
    scene.everywhere(page(waiting=10, running=40))
    await scene.tick(target)
    assert target.state is TargetState.CAPACITY_BLOCKED
    assert target.reason == "1 pod found no node in 900s, where one may take 900s; lacking: nvidia.com/gpu"
    assert target.latest.decision.desired == wanted
    assert f"CAPACITY-BLOCKED: {target.reason}" in story(target, target.latest)
    assert message in story(target, target.latest)
    scene.pods[-1] = pod("p", Phase.STARTING)
    await scene.tick(target)
    assert target.state is TargetState.ACTIVE
    assert target.latest.decision.desired > wanted


async def test_start_up_is_measured_once_for_each_pod() -> None:
    scene = Scene(pods=[pod("a", since=100.0, created=40.0), pod("b", since=100.0, created=10.0)])
    await scene.tick(target := scene.target(), 3)
    assert target.latest is not None
    start_up = target.latest.observation.start_up
    assert start_up is not None
    assert (start_up.median, start_up.p90) == (90.0, 90.0)


async def test_a_start_is_told_with_its_parts_and_both_of_its_kinds() -> None:
    warm = pod("a", since=100.0, created=40.0, scheduled_at=40.0, running_at=45.0)
    cold = pod("b", since=400.0, created=100.0, scheduled_at=300.0, running_at=320.0)
    scene = Scene(pods=[warm, cold])
    await scene.tick(target := scene.target())
    assert target.latest is not None
    assert (
        "a start takes 300s (median), 300s (p90), 60s on a node that is there, 300s with a new node: "
        "node 200s, images 20s, loading 80s"
    ) in story(target, target.latest)


async def test_a_tick_over_hundreds_of_pods_lets_others_run_in_between() -> None:
    names = [f"pod-{i}" for i in range(640)]
    scene = Scene(pods=[pod(name) for name in names], pages={name: page(running=1) for name in names})
    target = scene.target()
    tick = asyncio.create_task(target.tick())
    turns = 0
    while not tick.done():
        await asyncio.sleep(0)
        turns += 1
    await tick
    assert target.latest is not None
    assert target.latest.observation.load.running == 640
    assert turns >= 640 / 8 / A_TURN


async def test_a_fault_in_one_tick_does_not_end_the_loop() -> None:
    scene = Scene()
    target = scene.target()
    healthy, scene.pages = {name: page(0, 10) for name in "ab"}, {}  # a source that breaks its promise
    loop = asyncio.create_task(target.run(0.0))
    await asyncio.sleep(0.01)
    assert "KeyError" in target.reason
    scene.pages = healthy
    async with asyncio.timeout(10):
        await target.next_record(None)
    loop.cancel()
    assert target.answer() == 2.0


async def test_a_fault_in_tick_after_tick_is_logged_once() -> None:
    scene = Scene(pages={})  # a source that breaks its promise
    target = scene.target()
    with capture_logs() as logs:
        loop = asyncio.create_task(target.run(0.0))
        began = scene.clock.now
        for _ in range(20):
            await asyncio.sleep(0)
        loop.cancel()
    assert scene.clock.now > began + 3
    assert [line["target"] for line in logs if line["event"] == "tick failed"] == ["ns/llama"]


async def test_the_story_names_pods_signals_steps_and_what_keda_is_told() -> None:
    scene = Scene(warnings=("the API server dropped the tolerance",))
    scene.pages = {"a": page(30, 10), "b": Unknown("HTTP 503")}
    target = scene.target()
    await scene.tick(target)
    assert target.latest is not None
    text = story(target, target.latest)
    for part in (
        "ns/llama (policy adaptive) wants 5 replicas",
        "the API server dropped the tolerance",
        "30 waiting, 10 running",
        "UNKNOWN, HTTP 503",
        "ongoing requests: 4.00 replicas",
        "1 pod unknown: counted as fully used",
        "KEDA is told 5; the HPA arrives at 5",
    ):
        assert part in text


async def test_the_story_of_one_replica_is_in_the_singular() -> None:
    scene = Scene(pods=[pod("a")])
    scene.everywhere(page(0, 1))
    target = scene.target()
    await scene.tick(target)
    assert target.latest is not None
    assert target.latest.decision.desired == 1
    assert "wants 1 replica: " in story(target, target.latest)
