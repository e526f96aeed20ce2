"""Under everything that goes wrong in clusters, our policies keep calm, never go down from ignorance, and serve."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import pytest

from inference.simulated import Engine, Fleet, Request, Verdict
from inference.simulated.traffic import arrivals, constant
from scaler.backtest.contender import Defaults, Seen, Setup, Want
from scaler.backtest.deployment import PodLuck
from scaler.backtest.hpa import Hpa
from scaler.backtest.ours import Ours, exact
from scaler.backtest.plant import Plant, Run
from scaler.backtest.scores import Requests
from scaler.backtest.sight import Reader, Sight
from scaler.backtest.troubles import TROUBLES, troubled
from scaler.exposition.sample import Sample
from scaler.policy.parsing import parse
from scaler.policy.presets import PRESETS, with_policy
from scaler.policy.settings import PolicySettings
from scaler.sources.source import Unknown

PLAYED_S = 900.0
TURNS_PER_HOUR = 12.0
"""The most direction changes that a steady load may cause: one in five minutes, the presets' delay before a fall."""
LEAST_IN_TIME = 0.85
"""Share of the first tokens within their objective, even under rules that wait for a queue."""
CALM = Plant(1, 8, initial=3, luck=PodLuck(45.0))
ALL = tuple(TROUBLES)


@dataclass
class Watched(Ours):
    """One of our policies, with a list of the falls that it wanted while a pod could not be read."""

    def __init__(self, setup: Setup, settings: PolicySettings) -> None:
        super().__init__(setup, settings, "watched")
        self.falls: list[str] = []
        self.desired: int | None = None
        self.unread = 0

    def want(self, seen: Seen) -> Want:
        answer, load = super().want(seen), seen.observation.load
        assert answer.decision is not None
        desired = answer.decision.desired
        before = seen.observation.replicas.requested if self.desired is None else self.desired
        if load.unknown or not load.known:
            self.unread += 1
            if desired < before:
                self.falls.append(f"{seen.time:g} s: {before} → {desired}, {answer.decision.reason}")
        self.desired = desired
        return answer


@lru_cache
def steady(rate: float = 3.0) -> list[Request]:
    return list(arrivals(constant(rate), PLAYED_S, seed=4))


def turns(run: Run) -> int:
    """How often the count changed its direction."""
    up = [change.after > change.before for change in run.changes]
    return sum(before != after for before, after in pairwise(up))


@pytest.mark.parametrize("names", [*((name,) for name in TROUBLES), ALL], ids=lambda names: "+".join(names)[:20])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_steady_load_is_served_without_flapping_and_without_falls_from_ignorance(
    preset: str, names: tuple[str, ...]
) -> None:
    settings = parse(PolicySettings, with_policy({"policy": preset}))
    watched: list[Watched] = []

    def maker(setup: Setup) -> Watched:
        watched.append(Watched(setup, settings))
        return watched[-1]

    run = troubled(CALM, names).play(steady(), PLAYED_S, maker, seed=2)
    assert watched[0].falls == []
    assert ("missing" in names) == (watched[0].unread > 0)
    assert turns(run) <= TURNS_PER_HOUR * PLAYED_S / 3600
    assert {outcome.verdict for outcome in run.outcomes} == {Verdict.SERVED}
    assert (Requests.of(run.outcomes).ttft_s <= CALM.ttft_slo_s).mean() >= LEAST_IN_TIME


# --- What the troubles do


@dataclass
class Fixed(Defaults):
    """Wants a fixed count, later perhaps another one, and remembers what it saw."""

    table: tuple[tuple[float, float], ...] = ((0.0, 4.0),)
    name: str = "fixed"
    interval_s: float | None = 1.0
    scrape_interval_s: float = 0.0
    seen: list[Seen] = field(default_factory=list)

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        return exact(minimum, maximum)

    def want(self, seen: Seen) -> float:
        self.seen.append(seen)
        return next(value for since, value in reversed(self.table) if since <= seen.time)


def play(*names: str, table: tuple[tuple[float, float], ...] = ((0.0, 4.0),), initial: int = 4) -> tuple[Run, Fixed]:
    contender = Fixed(table)
    plant = troubled(Plant(1, 8, initial=initial, luck=PodLuck(20.0)), names)
    return plant.play(steady(), PLAYED_S, lambda _: contender, seed=1), contender


def busy() -> Engine:
    engine = Engine(CALM.profile)
    for request in list(arrivals(constant(3.0), 30.0, seed=1)):
        engine.submit(request, request.arrival_s)
    engine.advance(40.0)
    return engine


def test_a_deploy_replaces_every_pod_and_keeps_three_quarters_of_them_serving() -> None:
    run, _ = play("deploy")
    old, new = ([each for each in run.replicas if each.revision == revision] for revision in (0, 1))
    assert len(old) == len(new) == 4
    assert all(each.gone is not None for each in old)
    assert all(each.gone is None for each in new)
    during = [moment for moment in run.moments if moment.time >= PLAYED_S / 2]
    assert min(moment.ready for moment in during) >= 3
    assert max(moment.ready + moment.starting for moment in during) == 5
    assert {outcome.verdict for outcome in run.outcomes} == {Verdict.SERVED}


@pytest.mark.parametrize("later", [2.0, 7.0])
def test_a_count_that_moves_in_the_middle_of_a_deploy_is_reached_by_new_pods(later: float) -> None:
    run, _ = play("deploy", table=((0.0, 4.0), (PLAYED_S / 2 + 10, later)))
    staying = [each for each in run.replicas if each.gone is None]
    assert [each.revision for each in staying] == [1] * int(later)
    assert run.moments[-1].ready == later


def test_noise_moves_gauges_and_leaves_counters_alone() -> None:
    engine = busy()
    exactly, blurred = Reader(Sight(), 1), Reader(Sight(noise=0.3), 1)
    clear, pages = exactly.read("a", engine, 0.0), [blurred.read("a", engine, float(now)) for now in range(50)]
    assert isinstance(clear, Sample)
    assert {page.counters == clear.counters for page in pages if isinstance(page, Sample)} == {True}
    assert clear.running is not None
    running = [page.running / clear.running for page in pages if isinstance(page, Sample) and page.running]
    assert len(set(running)) > 10
    assert 0.85 < sum(running) / len(running) < 1.2


def test_a_stale_page_is_up_to_ten_seconds_old() -> None:
    _, contender = play("stale")
    ages = []
    for pod in ("pod-0", "pod-1"):
        pages = [next(each.sample for each in seen.pods if each.name == pod) for seen in contender.seen[100:400]]
        changes = [i for i, (a, b) in enumerate(pairwise(pages)) if a is not b]
        ages.append(changes[0])
        assert {b - a for a, b in pairwise(changes)} == {10}
    assert ages[0] != ages[1]  # not all at once


def test_a_tenth_of_the_time_a_pod_does_not_answer() -> None:
    reader, engine = Reader(Sight(missing_share=0.1), 1), busy()
    silent = [isinstance(reader.read("a", engine, float(now)), Unknown) for now in range(20_000)]
    assert 0.08 < sum(silent) / len(silent) < 0.12
    _, contender = play("missing")
    unread = [len(seen.observation.load.unknown) for seen in contender.seen[60:]]
    assert 0.2 < sum(unread) / len(unread) < 0.7  # of four
    assert all(seen.observation.load.known + len(seen.observation.load.unknown) == 4 for seen in contender.seen[60:])


def test_a_blind_router_fills_pods_unevenly() -> None:
    fleets = [Fleet(steady(), profile=CALM.profile, blind_share=share, seed=1) for share in (0.0, 1.0)]
    spread = []
    for fleet in fleets:
        for _ in range(4):
            fleet.add(0.0)
        fleet.advance(300.0)
        held = [pod.engine.outstanding for pod in fleet.pods.values()]
        spread.append(max(held) - min(held))
    assert spread[0] <= 4
    assert spread[1] > 8


def test_the_first_pod_alone_is_slow() -> None:
    run, _ = play("slow-gpu")
    overheads = [each.profile.step_time.overhead_s for each in run.replicas]
    assert overheads == [2 * CALM.profile.step_time.overhead_s, *[CALM.profile.step_time.overhead_s] * 3]


def test_gpus_end_before_the_replicas_do() -> None:
    run, _ = play("gpu-cap", table=((0.0, 4.0), (100.0, 8.0)))
    assert run.moments[-1].pending == 2
    assert run.moments[-1].ready == 6


@pytest.mark.parametrize("name", TROUBLES)
def test_the_same_seed_meets_the_same_trouble(name: str) -> None:
    first, again = (play(name, table=((0.0, 3.0), (200.0, 5.0)))[0] for _ in range(2))
    assert (first.outcomes, first.moments) == (again.outcomes, again.moments)


def test_a_trouble_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean crash-loop"):
        troubled(CALM, ["crashloop"])
    with pytest.raises(ValueError, match="known are noise"):
        troubled(CALM, ["x"])
