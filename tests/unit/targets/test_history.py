"""What a target remembers of its past: whole records, and numbers for charts."""

from __future__ import annotations

import math

import pytest

from scaler.cluster.model import Phase
from scaler.sources.source import Unknown
from scaler.targets import joined, points_of, story
from tests.unit.targets.world import Scene, page, pod


async def test_recent_ticks_and_older_changes_are_kept_each_once() -> None:
    scene = Scene()
    target = scene.target()
    scene.everywhere(page(10, 10))
    await scene.tick(target, 10)
    scene.everywhere(page(30, 30))
    await scene.tick(target, 200)
    records = list(target.records())
    assert [record.time for record in records] == sorted({record.time for record in records})
    assert sum(record.decision.desired != record.before for record in records) == 2
    assert records[-1] is target.latest


async def test_a_moment_of_the_past_is_the_tick_that_stood_then() -> None:
    scene = Scene()
    target = scene.target()
    seen = []
    for waiting in range(0, 400, 4):
        scene.everywhere(page(waiting, 10))
        await scene.tick(target)
        seen.append(target.latest)
    for record in seen:
        assert record is not None
        found = target.history.at(record.time + 0.5)
        assert found is not None
        assert found.time <= record.time
        assert found.decision.desired == record.decision.desired


async def test_a_remembered_record_is_what_it_was_and_tells_the_same_story() -> None:
    scene = Scene()
    scene.pods.append(pod("c", Phase.STARTING))
    scene.pages["b"] = Unknown("connection refused")
    target = scene.target()
    await scene.tick(target)
    first = target.latest
    assert first is not None
    told = story(target, first)
    await scene.tick(target, 50)
    found = target.history.at(first.time)
    assert found == first
    assert found is not first
    assert story(target, found) == told


async def test_before_all_that_is_remembered_the_oldest_is_told_and_before_the_first_tick_nothing() -> None:
    scene = Scene()
    target = scene.target()
    assert target.history.at(0.0) is None
    await scene.tick(target, 30)
    oldest = target.history.at(0.0)
    assert oldest == next(target.records())


async def test_a_past_story_does_not_speak_of_present_warnings() -> None:
    scene = Scene()
    target = scene.target()
    await scene.tick(target, 10)
    scene.warnings = ("the API server dropped the tolerance",)
    await scene.tick(target)
    assert target.latest is not None
    first = target.history.at(0.0)
    assert first is not None
    assert "dropped the tolerance" in story(target, target.latest)
    assert "dropped the tolerance" not in story(target, first)


async def test_points_are_the_numbers_of_the_decisions_and_unknown_is_no_number() -> None:
    scene = Scene()
    target = scene.target()
    scene.everywhere(page(25, 10))
    await scene.tick(target)
    scene.everywhere(Unknown("timeout"))
    await scene.tick(target)
    points = target.history.points()
    assert points.columns["waiting"][0] == 50
    assert math.isnan(points.columns["waiting"][1])
    assert points.columns["unknown_pods"] == [0, 2]
    for name in ("desired", "emission", "requested", "ready", "demand.ongoing requests"):
        assert len(points.columns[name]) == len(points) == 2
    assert target.latest is not None
    assert points.columns["desired"][1] == target.latest.decision.desired


async def test_points_after_a_time_are_only_the_new_ones() -> None:
    scene = Scene()
    target = scene.target()
    await scene.tick(target, 5)
    assert target.latest is not None
    before = target.latest.time
    await scene.tick(target, 3)
    later = target.history.points(before)
    assert len(later) == 3
    assert min(later.times) > before
    assert len(target.history.points(later.times[-1])) == 0


@pytest.mark.parametrize("ticks", [1, 299, 300, 301, 1500])
async def test_points_are_in_order_without_gaps_however_long_it_runs(ticks: int) -> None:
    scene = Scene()
    target = scene.target()
    await scene.tick(target, ticks)
    points = joined(points_of(target.history.older()), target.history.points())
    assert points.times == sorted(set(points.times))
    steps = [later - earlier for earlier, later in zip(points.times, points.times[1:], strict=False)]
    assert max(steps, default=0) <= 20
    assert {len(column) for column in points.columns.values()} == {len(points)}
    assert points.times[-1] - points.times[0] == pytest.approx(ticks - 1)
