"""Pods start, serve, drain and go; the router loses track of no request."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.simulated import MEMORY_BOUND, Fleet, PodState, Request, Verdict, summarize
from inference.simulated.traffic import CHAT, Lengths, RequestClass, arrivals, constant

SHORT = RequestClass("short", Lengths(100), Lengths(50))


def verdicts(outcomes: list) -> Counter[Verdict]:
    return Counter(outcome.verdict for outcome in outcomes)


def test_a_pod_takes_requests_only_once_it_has_started() -> None:
    fleet = Fleet([Request(9.9, 100, 10), Request(10.1, 100, 10)], start_up_s=10.0)
    fleet.scale(1, 0.0)
    assert fleet.count(PodState.STARTING) == 1
    refused, served = fleet.advance(60.0)
    assert (refused.verdict, refused.pod, refused.time) == (Verdict.REFUSED, None, 9.9)
    assert (served.verdict, served.pod) == (Verdict.SERVED, "pod-0")
    assert fleet.count(PodState.READY) == 1


def test_a_request_goes_to_the_emptier_of_two_pods() -> None:
    fleet = Fleet([Request(1.0, 100, 1000) for _ in range(8)])
    fleet.scale(2, 0.0)
    fleet.advance(2.0)
    assert [pod.engine.outstanding for pod in fleet.pods.values()] == [4, 4]


def test_of_many_pods_none_is_left_out_and_none_gets_all() -> None:
    fleet = Fleet([Request(1.0, 100, 1000) for _ in range(400)])
    fleet.scale(8, 0.0)
    fleet.advance(1.5)
    full = [pod.engine.outstanding for pod in fleet.pods.values()]
    assert sum(full) == 400
    assert max(full) - min(full) <= 6  # two choices even out; one by chance would spread over some twenty


def test_a_pod_that_has_just_started_is_not_flooded() -> None:
    fleet = Fleet([Request(1.0 + i / 100, 100, 5000) for i in range(150)], start_up_s=0.0)
    fleet.scale(5, 0.0)
    fleet.advance(2.0)
    before = fleet.outstanding
    fleet.add(2.0, name="new")
    fleet.advance(2.5)
    assert fleet.pods["new"].engine.outstanding < (fleet.outstanding - before) * 2 / 3


def test_a_request_that_is_sent_is_routed_like_the_traffics_own() -> None:
    fleet = Fleet([Request(1.0, 100, 1000)])
    fleet.scale(2, 0.0)
    fleet.send(Request(2.0, 100, 1000), 2.0)
    assert [pod.engine.outstanding for pod in fleet.pods.values()] == [1, 1]
    fleet.scale(0, 3.0)
    fleet.send(Request(4.0, 100, 10), 4.0)
    assert [outcome.verdict for outcome in fleet.advance(5.0)] == [Verdict.REFUSED]


def test_a_draining_pod_finishes_what_it_has_takes_nothing_new_and_goes() -> None:
    fleet = Fleet(arrivals(constant(2.0), 20.0, mix=[CHAT], seed=5))
    fleet.scale(2, 0.0)
    outcomes = fleet.advance(10.0)
    leaving = fleet.pods["pod-1"]
    had = leaving.engine.outstanding
    assert had > 0
    fleet.drain("pod-1", 10.0)
    assert leaving.state is PodState.TERMINATING
    later = fleet.advance(100.0)
    assert leaving.state is PodState.GONE
    assert list(fleet.pods) == ["pod-0"]
    assert sum(outcome.pod == "pod-1" for outcome in later) == had
    assert set(verdicts(outcomes + later)) == {Verdict.SERVED}


def test_what_is_not_finished_within_the_grace_is_lost() -> None:
    fleet = Fleet([Request(0.0, 100, 10), Request(0.0, 100, 5000)], grace_s=5.0)
    fleet.scale(1, 0.0)
    fleet.advance(1.0)
    fleet.drain("pod-0", 1.0)
    outcomes = fleet.advance(100.0)
    assert not fleet.pods
    (lost,) = (outcome for outcome in outcomes if outcome.verdict is Verdict.LOST)
    assert (lost.request.output_tokens, lost.time, lost.pod) == (5000, 6.0, "pod-0")


def test_a_crash_loses_what_the_pod_had() -> None:
    fleet = Fleet([Request(0.0, 100, 1000)] * 3)
    fleet.scale(1, 0.0)
    fleet.advance(1.0)
    fleet.kill("pod-0", 1.0)
    assert verdicts(fleet.advance(1.0)) == {Verdict.LOST: 3}
    assert not fleet.pods


def test_scaling_down_takes_pods_that_start_before_pods_that_serve_and_the_newest_first() -> None:
    fleet = Fleet()
    for now, start_up_s in ((0.0, 0.0), (1.0, 0.0), (2.0, 100.0), (3.0, 0.0)):
        fleet.add(now, start_up_s=start_up_s)
    order = []
    for replicas in (3, 2, 1, 0):
        before = set(fleet.pods)
        fleet.scale(replicas, 4.0)
        order += before - set(fleet.pods)
    assert order == ["pod-2", "pod-3", "pod-1", "pod-0"]


def test_scaling_counts_no_pod_that_is_going() -> None:
    fleet = Fleet([Request(0.0, 100, 2000)] * 4)
    fleet.scale(2, 0.0)
    fleet.advance(1.0)
    fleet.scale(1, 1.0)
    assert (fleet.count(PodState.READY), fleet.count(PodState.TERMINATING)) == (1, 1)
    fleet.scale(2, 2.0)
    assert (fleet.count(PodState.READY), fleet.count(PodState.TERMINATING)) == (2, 1)


def test_a_request_longer_than_the_model_takes_is_refused() -> None:
    fleet = Fleet([Request(0.0, 3000, 3000)], profile=replace(MEMORY_BOUND, max_model_len=4096))
    fleet.scale(1, 0.0)
    assert verdicts(fleet.advance(100.0)) == {Verdict.REFUSED: 1}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.sampled_from(["scale", "kill"]), st.integers(0, 4)), max_size=12),
    st.integers(0, 1000),
)
def test_every_request_ends_exactly_once_whatever_happens_to_the_pods(
    story: list[tuple[float, str, int]], seed: int
) -> None:
    traffic = list(arrivals(constant(8.0), 20.0, mix=[SHORT, CHAT], seed=seed))
    fleet = Fleet(traffic, start_up_s=2.0, grace_s=1.5, seed=seed)
    fleet.scale(2, 0.0)
    now, outcomes = 0.0, []
    for wait, deed, count in story:
        now += wait
        outcomes += fleet.advance(now)
        if deed == "scale":
            fleet.scale(count, now)
        elif fleet.pods:
            fleet.kill(list(fleet.pods)[count % len(fleet.pods)], now)
    outcomes += fleet.advance(1000.0)
    assert fleet.idle
    assert sorted(id(outcome.request) for outcome in outcomes) == sorted(map(id, traffic))


def test_the_same_seed_gives_the_same_outcomes() -> None:
    def played() -> list:
        fleet = Fleet(arrivals(constant(8.0), 60.0, mix=[CHAT], seed=2), seed=2)
        fleet.scale(2, 0.0)
        return fleet.advance(300.0)

    assert played() == played()


def test_a_summary_counts_refused_and_lost_requests_as_missed() -> None:
    fleet = Fleet([Request(float(second), 100, 20) for second in range(10)], start_up_s=4.5)
    fleet.scale(1, 0.0)
    summary = summarize(fleet.advance(100.0))
    assert (summary.served, summary.refused, summary.lost) == (5, 5, 0)
    assert summary.attainment.both == 0.5
    assert summary.ttft.p50 <= summary.ttft.p95 <= summary.ttft.p99 < 1.0


def test_a_summary_measures_both_objectives_for_each_request() -> None:
    fleet = Fleet([Request(0.0, 100, 20), Request(0.0, 100, 20)], profile=replace(MEMORY_BOUND, max_num_seqs=1))
    fleet.scale(1, 0.0)
    outcomes = fleet.advance(100.0)
    slow_first = sorted(outcome.finished.ttft_s for outcome in outcomes)[1]
    summary = summarize(outcomes, ttft_slo_s=slow_first / 2, tpot_slo_s=0.1)
    assert (summary.attainment.ttft, summary.attainment.tpot, summary.attainment.both) == (0.5, 1.0, 0.5)
    assert summarize(outcomes, tpot_slo_s=1e-6).attainment.both == 0.0


def test_a_summary_of_nothing_claims_nothing() -> None:
    summary = summarize([])
    assert (summary.served, summary.attainment, summary.ttft) == (0, None, None)


@pytest.mark.parametrize(
    ("deed", "says"),
    [
        (lambda fleet: fleet.scale(-1, 0.0), "replicas is -1; it must be at least 0"),
        (lambda fleet: fleet.add(0.0, name="pod-0"), "a pod 'pod-0' is there already"),
        (lambda fleet: fleet.advance(-1.0), r"time -1\.0 has passed"),
        (lambda _: Fleet([Request(5.0, 1, 1), Request(4.0, 1, 1)]).advance(9.0), "traffic out of order"),
    ],
)
def test_what_makes_no_sense_is_refused(deed: object, says: str) -> None:
    fleet = Fleet()
    fleet.add(0.0)
    with pytest.raises(ValueError, match=says):
        deed(fleet)
