"""The plant: nothing is lost, luck is the same for all, and the HPA, KEDA and the nodes have their say."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.simulated import MEMORY_BOUND, Engine, Page, Request, Verdict
from inference.simulated.traffic import arrivals, constant, pulse
from scaler.backtest.contender import Defaults, Maker, Seen, Setup, Want
from scaler.backtest.deployment import PodLuck
from scaler.backtest.entrants import entrant
from scaler.backtest.hpa import DOWN, Behavior, Hpa, ScalingPolicy
from scaler.backtest.nodes import IDLE_S, NodePool
from scaler.backtest.ours import exact
from scaler.backtest.plant import COOLDOWN_S, Plant, Run
from scaler.backtest.samples import sample
from scaler.backtest.scores import numbers, pareto
from scaler.exposition import read_page

SHORT = Plant(luck=PodLuck(30.0))


@dataclass
class Plan(Defaults):
    """A contender that wants what a table says: (from when on, value)."""

    table: tuple[tuple[float, float | None], ...]
    name: str = "plan"
    interval_s: float | None = 1.0
    scrape_interval_s: float = 0.0
    at_once: bool = False
    warm: int = 0
    seen: list[Seen] = field(default_factory=list)

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        return exact(minimum, maximum)

    def want(self, seen: Seen) -> Want | None:
        self.seen.append(seen)
        value = next((value for since, value in reversed(self.table) if since <= seen.time), 0.0)
        return None if value is None else Want(value, at_once=int(value) if self.at_once else None, warm=self.warm)


def steady(rate: float = 1.0, duration_s: float = 300.0, seed: int = 1) -> list[Request]:
    return list(arrivals(constant(rate), duration_s, seed=seed))


def play(plant: Plant, *table: tuple[float, float | None], duration_s: float = 300.0, **plan: object) -> Run:
    contender = Plan(table, **plan)  # type: ignore[arg-type]
    return plant.play(steady(duration_s=duration_s), duration_s, lambda _: contender, seed=1)


def counts(run: Run, name: str) -> list[int]:
    return [getattr(moment, name) for moment in run.moments]


@settings(deadline=None, max_examples=25)
@given(
    wants=st.lists(st.tuples(st.integers(0, 200), st.one_of(st.none(), st.floats(0, 6))), max_size=6),
    crash=st.floats(0, 1),
    minimum=st.integers(0, 2),
    nodes=st.one_of(st.none(), st.builds(NodePool, st.integers(1, 4), st.integers(0, 1), st.just(20.0))),
    seed=st.integers(0, 99),
)
def test_every_request_ends_exactly_once_whatever_happens_to_the_pods(
    wants: list[tuple[int, float | None]], crash: float, minimum: int, nodes: NodePool | None, seed: int
) -> None:
    plant = Plant(minimum, 5, luck=PodLuck(15.0, crash_share=crash), nodes=nodes, grace_s=20.0)
    requests = list(arrivals(constant(1.0), 200.0, seed=seed))
    run = plant.play(requests, 200.0, lambda _: Plan(tuple(sorted(wants, key=lambda want: want[0]))), seed=seed)
    assert sorted(outcome.request.arrival_s for outcome in run.outcomes) == [each.arrival_s for each in requests]
    assert all(minimum <= moment.requested <= 5 for moment in run.moments)
    assert sum(moment.arrivals for moment in run.moments) <= len(requests)


@pytest.mark.parametrize("policy", ["adaptive", "pulse", "keda-queue", "oracle"])
def test_the_same_seed_gives_the_same_run_and_another_one_another(policy: str) -> None:
    requests = list(arrivals(pulse(0.5, 12.0, 60.0, 60.0), 300.0, seed=1))
    maker = entrant(policy).maker
    first, again, other = (SHORT.play(requests, 300.0, maker, seed=seed) for seed in (1, 1, 2))
    assert (first.outcomes, first.moments, first.changes) == (again.outcomes, again.moments, again.changes)
    assert [each.start_up_s for each in first.replicas] != [each.start_up_s for each in other.replicas]


def test_pods_have_the_same_luck_under_every_contender() -> None:
    few, many = play(SHORT, (0, 2.0)), play(SHORT, (50, 6.0))
    assert [each.start_up_s for each in many.replicas][:2] == [each.start_up_s for each in few.replicas]


def test_a_count_is_asked_for_at_the_next_sync_and_ready_a_start_up_later() -> None:
    run = play(SHORT, (0, 1.0), (100, 3.0))
    (change,) = run.changes
    assert (change.before, change.after, change.by) == (1, 3, "HPA")
    assert 100 <= change.time <= 116
    new = run.replicas[1:]
    assert [each.ready for each in new] == [pytest.approx(change.time + each.start_up_s) for each in new]


def test_direct_delivery_does_not_wait_for_the_hpa_and_the_hpa_does_not_undo_it() -> None:
    run = play(SHORT, (0, 1.0), (100, 3.0), at_once=True)
    (change,) = run.changes
    assert change.by == "direct"
    assert 100 <= change.time <= 101


def test_no_answer_keeps_the_count() -> None:
    run = play(SHORT, (0, 4.0), (100, None))
    assert [(change.before, change.after) for change in run.changes] == [(1, 4)]


def test_the_contenders_own_hpa_moves_the_count() -> None:
    class OneAMinute(Plan):
        def hpa(self, minimum: int, maximum: int) -> Hpa:
            return Hpa(minimum, maximum, Behavior(0.0, (ScalingPolicy("Pods", 1, 60.0),), tolerance=0.0), DOWN)

    run = SHORT.play(steady(), 300.0, lambda _: OneAMinute(((0, 4.0),)), seed=1)
    assert [change.after for change in run.changes] == [2, 3, 4]
    assert all(after.time - before.time >= 60 for before, after in zip(run.changes, run.changes[1:], strict=False))


def test_no_more_pods_have_a_node_than_there_are_gpus() -> None:
    plant = Plant(maximum=8, luck=PodLuck(10.0), nodes=NodePool(most=3, warm=1, node_s=40.0))
    run = play(plant, (0, 1.0), (60, 6.0))
    assert max(counts(run, "requested")) == 6
    assert max(map(sum, zip(*(counts(run, name) for name in ("starting", "ready", "terminating")), strict=True))) == 3
    assert run.moments[-1].pending == 3
    second = next(each for each in run.replicas[1:] if each.scheduled is not None)
    assert second.scheduled is not None
    assert second.scheduled - second.created == pytest.approx(40.0, rel=0.5)


def test_pods_that_the_cap_leaves_without_a_node_are_seen_with_their_age() -> None:
    plant = Plant(maximum=8, luck=PodLuck(10.0), nodes=NodePool(most=3, warm=3, node_s=40.0))
    plan = Plan(((0, 1.0), (60, 6.0)))
    run = plant.play(steady(), 300.0, lambda _: plan, seed=1)
    asked = next(change.time for change in run.changes if change.after > 3)
    last = plan.seen[-1]
    assert last.observation.replicas.unschedulable == 3
    assert last.observation.replicas.unschedulable_s == pytest.approx(last.time - asked)
    assert last.observation.replicas.lacks == "nvidia.com/gpu"
    assert all(seen.observation.replicas.unschedulable_s == 0 for seen in plan.seen if seen.time < asked)


def test_a_warm_node_spares_a_pod_the_wait_and_is_paid_for_while_it_is_idle() -> None:
    plant = Plant(maximum=8, luck=PodLuck(10.0), nodes=NodePool(most=8, warm=1, node_s=40.0))
    cold, warm = (play(plant, (0, 1.0), (100, 2.0), warm=count) for count in (0, 1))

    def waited(run: Run) -> float:
        second = run.replicas[1]
        assert second.scheduled is not None
        return second.scheduled - second.created

    assert waited(cold) == pytest.approx(40.0, rel=0.5)
    assert waited(warm) == 0.0
    assert cold.node_hours is not None
    assert warm.node_hours is not None
    assert warm.node_hours > cold.node_hours
    assert numbers(warm, plant)["node_hours"] == warm.node_hours


def test_warm_nodes_are_kept_however_idle_and_others_given_back() -> None:
    plant = Plant(maximum=8, luck=PodLuck(10.0), nodes=NodePool(most=8, warm=4, node_s=40.0))
    long = IDLE_S + 400.0
    for count in (0, 2):
        run = play(plant, (0, 1.0), duration_s=long, warm=count)
        assert run.node_hours == pytest.approx(((1 + count) * long + (3 - count) * IDLE_S) / 3600, rel=0.02)


def test_warm_nodes_are_no_more_than_there_are_gpus() -> None:
    plant = Plant(maximum=8, luck=PodLuck(10.0), nodes=NodePool(most=3, warm=1, node_s=40.0))
    run = play(plant, (0, 1.0), duration_s=300.0, warm=8)
    assert run.node_hours is not None
    assert run.node_hours <= 3 * 300.0 / 3600


def test_without_a_pool_there_are_no_nodes_to_pay_for() -> None:
    run = play(SHORT, (0, 1.0), warm=3)
    assert run.node_hours is None


def test_a_pod_without_a_node_costs_nothing_and_goes_first() -> None:
    plant = Plant(maximum=8, luck=PodLuck(10.0), nodes=NodePool(most=2, warm=2, node_s=40.0))
    run = play(plant, (0, 4.0), (150, 2.0))
    cost = numbers(run, plant)
    assert cost["average_replicas"] <= 2.0
    assert cost["wasted_starts"] == 0
    assert run.moments[-1].ready == 2


def test_pods_that_crash_never_serve_and_are_wasted_when_they_go() -> None:
    plant = Plant(luck=PodLuck(30.0, crash_share=1.0))
    run = play(plant, (0, 3.0), (200, 1.0))
    assert max(counts(run, "ready")) == 1
    assert numbers(run, plant)["wasted_starts"] == 2


def test_a_pod_that_is_told_to_go_finishes_what_it_has() -> None:
    run = play(SHORT, (0, 3.0), (200, 1.0))
    assert {outcome.verdict for outcome in run.outcomes} == {Verdict.SERVED}
    assert any(counts(run, "terminating"))


def test_keda_leads_away_from_zero_and_back_after_the_cool_down() -> None:
    requests = [Request(100.0, 100, 10)]
    maker = entrant("adaptive").maker
    plant = Plant(0, 4, luck=PodLuck(20.0, spread=0.0))
    run = plant.play(requests, 600.0, maker, seed=1)
    up, down = run.changes
    assert (up.before, up.after, up.by) == (0, 1, "KEDA")
    assert 100 <= up.time <= 102
    assert (down.after, down.by) == (0, "KEDA")
    assert down.time >= up.time + COOLDOWN_S
    (outcome,) = run.outcomes
    assert outcome.verdict is Verdict.SERVED
    assert numbers(run, plant)["attainment"]["ttft"] == 0.0  # it waited for the pod


def test_what_prometheus_scraped_is_old_and_what_the_scaler_reads_is_not() -> None:
    scraped, own = Plan(((0, 1.0),), scrape_interval_s=15.0), Plan(((0, 1.0),))
    for contender in (scraped, own):
        SHORT.play(steady(), 300.0, lambda _, contender=contender: contender, seed=1)
    assert {seen.time - seen.scraped for seen in own.seen} == {0.0}
    ages = [seen.time - seen.scraped for seen in scraped.seen[20:]]
    assert 13 <= max(ages) < 15


def test_a_sample_is_what_the_engines_page_says() -> None:
    engine = Engine(MEMORY_BOUND, seed=1)
    for request in steady(3.0, 40.0):
        engine.submit(request, request.arrival_s)
    engine.advance(60.0)
    ours, read = sample(engine), read_page(Page(engine, model_name="m").render().encode())
    assert (ours.waiting, ours.running) == (read.waiting, read.running)
    assert ours.kv_cache_usage == pytest.approx(read.kv_cache_usage)
    assert ours.counters == {name: read.counters[name] for name in ours.counters}
    assert set(ours.histograms) == set(read.histograms)
    for name, histogram in ours.histograms.items():
        assert (histogram.bounds, histogram.counts) == (read.histograms[name].bounds, read.histograms[name].counts)
        assert histogram.sum == pytest.approx(read.histograms[name].sum)


def test_what_an_owner_knows_of_the_plant_has_the_nodes_time_in_it() -> None:
    told: list[Setup] = []

    def maker(setup: Setup) -> Plan:
        told.append(setup)
        return Plan(((0, 1.0),))

    known: Maker = maker
    Plant(luck=PodLuck(30.0), nodes=NodePool(4, 1, 90.0)).play(steady(), 10.0, known)
    assert told[0].start_up_s == 120.0


@pytest.mark.parametrize(("minimum", "maximum"), [(3, 2), (-1, 4), (0, 0)])
def test_limits_that_are_none_are_refused(minimum: int, maximum: int) -> None:
    with pytest.raises(ValueError, match="right is 0 ≤ minimum ≤ maximum ≥ 1"):
        Plant(minimum, maximum)


def test_the_front_is_those_that_nobody_beats() -> None:
    assert pareto([(0.9, 1.0), (0.9, 2.0), (0.99, 2.0), (0.8, 0.5), (0.9, 1.0)]) == [True, False, True, True, True]
