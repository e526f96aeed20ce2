"""Targets that share a budget of GPUs, each with its own loop."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scaler.targets import Budget, Budgets, Record, Target, Targets
from tests.unit.targets.world import SIMPLE, Scene, page, scaled_object

ALL = {"ns/*": 0}


class Pool:
    """Targets `llama` and `qwen`, each with two pods and a demand of six replicas, and their budget."""

    def __init__(self, gpus: int, priorities: Mapping[str, int], **metadata: str) -> None:
        self.scene = Scene()
        self.scene.everywhere(page(running=30))
        self.targets: Targets = self.scene.targets()
        self.targets.world.allowance = Budgets(self.targets, [Budget("pool", gpus, priorities)]).allowance
        self.targets.show([scaled_object({**SIMPLE, **metadata}, name=name) for name in ("llama", "qwen")])

    async def decide(self, times: int = 3) -> dict[str, int]:
        """Let every target tick so often; their counts at the end."""
        for _ in range(times):
            for target in self.targets:
                await target.tick()
            self.scene.clock.now += 1.0
        return {target.name: latest(target).decision.desired for target in self.targets}

    def told(self, name: str) -> list[str]:
        """What the budget said in the latest decision of a target."""
        decision = latest(self.targets.get("ns", name)).decision
        return [step.text for step in decision.steps if step.rule == "budget"]


def latest(target: Target) -> Record:
    assert target.latest is not None
    return target.latest


async def test_with_enough_for_all_nothing_is_cut() -> None:
    pool = Pool(12, ALL)
    assert await pool.decide() == {"llama": 6, "qwen": 6}
    assert pool.told("llama") == pool.told("qwen") == []


async def test_equals_share() -> None:
    pool = Pool(8, ALL)
    assert await pool.decide() == {"llama": 4, "qwen": 4}
    assert pool.told("llama") == ["6 → 4: budget pool of 8 GPUs at priority 0, ns/qwen has 4 (priority 0)"]


async def test_the_lower_priority_gives_way_down_to_its_minimum() -> None:
    pool = Pool(7, {"ns/qwen": 10, "ns/*": 0})
    assert await pool.decide() == {"llama": 1, "qwen": 6}
    assert pool.told("llama") == ["6 → 1: budget pool of 7 GPUs at priority 0, ns/qwen has 6 (priority 10)"]


async def test_what_is_claimed_is_what_would_be_wanted_without_a_budget() -> None:
    pool = Pool(8, ALL)
    await pool.decide()
    assert [latest(target).decision.claim for target in pool.targets] == [6, 6]


async def test_a_budget_counts_gpus_and_not_replicas() -> None:
    pool = Pool(16, ALL, gpusPerReplica="4")
    assert await pool.decide() == {"llama": 2, "qwen": 2}


@pytest.mark.parametrize("said", [("4", "1"), ("1", "4")])
async def test_of_two_triggers_the_one_that_says_more_gpus_counts(said: tuple[str, str]) -> None:
    pool = Pool(16, ALL)
    triggers = [{**SIMPLE, "headroom": str(i), "gpusPerReplica": gpus} for i, gpus in enumerate(said)]
    pool.targets.show([scaled_object(*triggers, name=name) for name in ("llama", "qwen")])
    assert await pool.decide() == {"llama": 2, "qwen": 2}


async def test_a_target_that_no_pattern_fits_is_free_and_counts_for_nothing() -> None:
    pool = Pool(4, {"ns/llama": 0})
    assert await pool.decide() == {"llama": 4, "qwen": 6}


async def test_nobody_is_cut_before_anybody_has_decided() -> None:
    pool = Pool(2, ALL)
    await pool.decide(times=1)
    assert pool.told("llama") == []


async def test_a_trigger_that_was_replaced_claims_nothing() -> None:
    pool = Pool(8, ALL)
    await pool.decide()
    pool.targets.find("ns", "qwen", SIMPLE)  # KEDA asks
    changed = {**SIMPLE, "targetOngoingRequests": "60", "downscaleDelay": "0"}
    pool.targets.show([scaled_object(SIMPLE, name="llama"), scaled_object(changed, name="qwen")])
    for _ in range(3):
        for target in pool.targets:
            await target.tick()
        pool.scene.clock.now += 1.0
    assert latest(pool.targets.get("ns", "llama")).decision.desired == 6


async def test_room_on_nodes_stays_within_the_budget() -> None:
    pool = Pool(8, ALL, warmReplicas="3")
    await pool.decide()
    assert [latest(target).decision.warm for target in pool.targets] == [0, 0]
