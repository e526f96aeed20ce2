"""The requests in each pod, for whoever has to choose one that is to go."""

from __future__ import annotations

from scaler.cluster.model import Phase
from scaler.serving.pod_loads import pod_loads
from scaler.sources.source import Unknown
from tests.unit.targets.world import SIMPLE, Scene, page, pod


async def test_what_waits_and_runs_in_a_pod_is_its_load() -> None:
    scene = Scene()
    targets = scene.targets()
    scene.pages = {"a": page(waiting=2, running=3), "b": page()}
    await scene.tick(targets.find("ns", "llama", SIMPLE))
    assert pod_loads(targets)("ns") == {"a": 5.0, "b": 0.0}
    assert pod_loads(targets)("elsewhere") == {}


async def test_an_unknown_pod_is_not_an_idle_pod() -> None:
    scene = Scene(pods=[pod("a"), pod("b"), pod("c", Phase.STARTING)])
    targets = scene.targets()
    scene.pages = {"a": page(), "b": Unknown("no answer")}
    await scene.tick(targets.find("ns", "llama", SIMPLE))
    assert pod_loads(targets)("ns") == {"a": 0.0}


async def test_what_was_read_long_ago_says_nothing_about_now() -> None:
    scene = Scene()
    targets = scene.targets()
    await scene.tick(targets.find("ns", "llama", SIMPLE))
    scene.clock.now += 60.0
    assert pod_loads(targets)("ns") == {}


async def test_a_target_without_a_decision_adds_nothing() -> None:
    scene = Scene()
    targets = scene.targets()
    targets.find("ns", "llama", SIMPLE)
    assert pod_loads(targets)("ns") == {}
