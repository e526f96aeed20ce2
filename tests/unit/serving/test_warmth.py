"""Between decisions and room on nodes: what is wished for, and what targets are told of it."""

from __future__ import annotations

from dataclasses import dataclass

from scaler.serving.warmth import SHADOW, WITHOUT, Warmth, warm_wishes
from tests.unit.targets.world import SIMPLE, Scene, scaled_object

LLAMA = ("ns", "llama")
ONE_MORE = {**SIMPLE, "warmReplicas": "1"}
TWO_MORE = {**SIMPLE, "warmReplicas": "2"}


@dataclass
class Room:
    """Who makes the room, and has made so much."""

    replicas: int = 0
    trouble: str = ""

    def room(self, _namespace: str, _name: str) -> tuple[int, str]:
        return self.replicas, self.trouble


async def test_a_wish_is_the_most_that_a_trigger_wants_and_unknown_before_a_decision() -> None:
    scene = Scene()
    targets = scene.targets()
    targets.show([scaled_object(ONE_MORE, TWO_MORE)])
    wishes = warm_wishes(targets)
    assert wishes() == {}
    for target in targets:
        await scene.tick(target)
    assert wishes() == {LLAMA: 2}


async def test_a_trigger_that_was_replaced_wishes_no_more() -> None:
    scene = Scene()
    targets = scene.targets()
    targets.show([scaled_object(TWO_MORE)])
    (before,) = targets
    await scene.tick(before)
    targets.find("ns", "llama", TWO_MORE)  # KEDA asks
    targets.show([scaled_object(SIMPLE)])
    for target in targets:
        await scene.tick(target)
    assert warm_wishes(targets)() == {LLAMA: 0}


async def test_a_trigger_whose_successor_is_invalid_wishes_on() -> None:
    scene = Scene()
    targets = scene.targets()
    targets.show([scaled_object(TWO_MORE)])
    (target,) = targets
    await scene.tick(target)
    targets.show([scaled_object({**TWO_MORE, "headroom": "a lot"})])
    assert warm_wishes(targets)() == {LLAMA: 2}


async def test_room_that_is_there_is_known_to_the_next_decision_and_trouble_is_a_warning() -> None:
    scene, keeper = Scene(), Room(1, "no autoscaler acts on it")
    target = scene.target(ONE_MORE, observers=[Warmth(keeper).note])
    await scene.tick(target, 2)
    assert target.latest is not None
    assert target.latest.observation.replicas.room == 1
    assert target.warnings == ("no autoscaler acts on it",)
    keeper.trouble = ""
    await scene.tick(target)
    assert target.warnings == ()


async def test_a_wish_that_nobody_fulfils_is_told_with_the_reason() -> None:
    for why_not in (WITHOUT, SHADOW):
        scene = Scene()
        target = scene.target(ONE_MORE, observers=[Warmth(None, why_not).note])
        await scene.tick(target)
        (warning,) = target.warnings
        assert warning.startswith("warmReplicas: no room on nodes is made")
        assert why_not in warning


async def test_without_a_wish_there_is_nothing_to_tell() -> None:
    scene = Scene()
    target = scene.target(SIMPLE, observers=[Warmth(None, WITHOUT).note])
    await scene.tick(target)
    assert target.warnings == ()
