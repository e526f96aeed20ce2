"""What holds for all settings and everything that can be seen."""

from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from scaler.policy import (
    Decision,
    Latency,
    Limits,
    Load,
    Observation,
    PolicySettings,
    Replicas,
    StartUp,
    State,
    Took,
    decide,
)
from scaler.policy.budget import Allowance
from scaler.policy.counting import ceil
from scaler.policy.hpa import recommend
from scaler.policy.parsing import parse
from scaler.policy.presets import PRESETS, with_policy
from scaler.policy.schedule import floor_at

RULES = (
    "+3 when queue_seconds >= 15; +1..2 when queue_seconds >= 5 every 120s; -1 when utilization < 0.4 for 5m",
    "+2 when ttft_p95 > 0.3 or waiting > 100 for 10s; -1..4 when ongoing < 10 and worst_ttft_p95 < 1 every 30s",
)
SCHEDULE = "Mon-Fri 08:00-20:00 Europe/Berlin = 6; 22:00-04:00 UTC = 40"

KEYS: dict[str, st.SearchStrategy[object]] = {
    "targetOngoingRequests": st.sampled_from([0.01, 1, 5, 12, 1000]),
    "targetQueueSeconds": st.sampled_from([0.1, 5, 60]),
    "targetKvCacheUsage": st.sampled_from([0.1, 0.8, 1]),
    "targetTokensPerSecond": st.sampled_from([1, 2500]),
    "rules": st.sampled_from(RULES),
    "maxNumSeqs": st.sampled_from([1, 16, 256]),
    "utilization": st.sampled_from(["auto", "slots", "kv", "gpu"]),
    "smoothingFactor": st.sampled_from([0.01, 0.5, 1]),
    "lookAhead": st.sampled_from(["auto", "0", "60s", "1h"]),
    "burstThreshold": st.sampled_from([0.01, 0.5, 5]),
    "upscalingFactor": st.sampled_from([0.3, 1, 2, 1000]),
    "downscalingFactor": st.sampled_from([0.1, 0.5, 1, 3]),
    "headroom": st.sampled_from(["0", "2", "10%", "300%"]),
    "upscaleDelay": st.sampled_from(["0", "3s", "1m"]),
    "downscaleDelay": st.sampled_from(["0", "10s", "5m"]),
    "delayMode": st.sampled_from(["stabilization", "consecutive"]),
    "upscaleLimit": st.sampled_from(["1/10s", "4/15s", "100%/1m"]),
    "downscaleLimit": st.sampled_from(["1/10s", "25%/1m"]),
    "startingCredit": st.sampled_from(["true", "false"]),
    "minReplicasSchedule": st.just(SCHEDULE),
    "ttftSlo": st.sampled_from(["1ms", "3s", "1h"]),
    "itlSlo": st.sampled_from(["0.1ms", "100ms", "1h"]),
    "e2eSlo": st.sampled_from(["1ms", "30s", "1d"]),
    "percentile": st.sampled_from([50, 90, "p95", 99]),
    "costWeight": st.sampled_from([0.01, 1, 100]),
    "warmReplicas": st.sampled_from(["auto", "2", "25%", "10000%", "2147483647"]),
    "maxWarmReplicas": st.sampled_from(["0", "4", "10000%", "2147483647"]),
    "delivery": st.sampled_from(["hpa", "direct"]),
    "maxNodeProvisionTime": st.sampled_from(["auto", "1s", "1h"]),
    "metricsInterval": st.sampled_from(["0.5s", "1s", "5s"]),
    "toleranceMode": st.sampled_from(["exact", "round-up", "hold"]),
}
presets = st.sampled_from(sorted(PRESETS)).map(lambda name: parse(PolicySettings, with_policy({"policy": name})))
settings_of_all_kinds = st.one_of(
    st.fixed_dictionaries({}, optional=KEYS).map(lambda keys: parse(PolicySettings, keys)), presets
)

amount = st.one_of(st.none(), st.sampled_from([0.0, 0.3, 1.0, 8.0, 1e6, 1e300]), st.floats(0, 1e4))
share = st.one_of(st.none(), st.floats(0, 1))
count = st.one_of(st.integers(0, 12), st.integers(0, 2000))
latencies = st.dictionaries(
    st.sampled_from(["ttft", "itl", "tpot", "e2e", "queue_time"]),
    st.floats(0, 1e5).map(lambda p95: Latency(p95 / 2, p95, p95, p95, p95 * 2)),
    max_size=2,
)


@st.composite
def loads(draw: st.DrawFn) -> Load:
    """Anything that pods could say, each value known or not."""
    shares = ("kv_cache_usage", "gpu_utilization")
    amounts = (
        *("waiting", "running", "most_running", "full_running", "arrival_rate", "completion_rate"),
        *("prompt_token_rate", "generation_token_rate", "tokens_per_request"),
    )
    return Load(
        known=draw(st.integers(0, 12)),
        unknown=dict.fromkeys((f"pod-{i}" for i in range(draw(st.sampled_from([0, 0, 0, 1, 5])))), "timeout"),
        latency=draw(latencies),
        **{name: draw(share) for name in shares},
        **{name: draw(amount) for name in amounts},
    )


def started(seconds: float, *, waited: bool) -> StartUp:
    """Starts that took so long, and those that waited for a node three times as long."""
    took = StartUp(seconds, seconds * 2, warm=Took(seconds, seconds * 2))
    cold, node = Took(seconds * 3, seconds * 4), Took(seconds * 2, seconds * 3)
    return replace(took, cold=cold, node=node, last_cold=True) if waited else took


@st.composite
def observations(draw: st.DrawFn, limits: Limits | None = None) -> Observation:
    load, minimum = draw(loads()), draw(st.integers(0, 20))
    if limits is None:
        limits = Limits(minimum, minimum + draw(count) + 1, draw(st.sampled_from([0, 0.1])), 0.1)
    ready = load.known + len(load.unknown)
    seconds = draw(st.one_of(st.none(), st.sampled_from([0.0, 30.0, 1e4])))
    return Observation(
        time=0.0,
        load=load,
        replicas=Replicas(
            requested=draw(count),
            current=draw(count),
            ready=ready,
            starting=draw(st.integers(0, 5)),
            terminating=draw(st.integers(0, 5)),
            unschedulable=draw(st.sampled_from([0, 0, 3])),
            unschedulable_s=draw(st.sampled_from([0.0, 200.0, 1e4])),
            lacks=draw(st.sampled_from(["", "nvidia.com/gpu"])),
            room=draw(st.sampled_from([0, 0, 2])),
        ),
        limits=limits,
        start_up=None if seconds is None else started(seconds, waited=draw(st.booleans())),
        utc=draw(st.floats(0, 4e9)),
    )


steps_in_time = st.one_of(st.sampled_from([0.5, 1.0, 5.0, 0.0, -1.0, 86400.0, -86400.0]), st.floats(0, 400))
stories = st.lists(st.tuples(steps_in_time, observations()), min_size=1, max_size=12)


def play(settings: PolicySettings, story: list[tuple[float, Observation]]) -> list[tuple[Observation, State, Decision]]:
    state, time, played = None, 1e6, []
    for passed, observation in story:
        time += passed
        seen = replace(observation, time=time)
        state, decision = decide(settings, state, seen)
        played.append((seen, state, decision))
    return played


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories)
def test_the_count_stays_within_its_limits_whatever_is_seen(
    settings: PolicySettings, story: list[tuple[float, Observation]]
) -> None:
    for seen, _, decision in play(settings, story):
        assert seen.limits.minimum <= decision.desired <= seen.limits.maximum
        assert 0 <= decision.emission.value < float("inf")
        assert decision.warm == 0 or 0 < decision.desired + decision.warm <= seen.limits.maximum
        assert max(1, seen.limits.minimum) <= decision.emission.arrives_at <= max(1, seen.limits.maximum)


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories, st.integers(0, 20))
def test_count_and_room_stay_within_a_budget_whatever_is_seen(
    settings: PolicySettings, story: list[tuple[float, Observation]], spare: int
) -> None:
    def budgeted(seen: Observation) -> Observation:
        return replace(seen, allowance=Allowance(seen.limits.minimum + spare, "budget pool"))

    for seen, _, decision in play(settings, [(passed, budgeted(seen)) for passed, seen in story]):
        assert seen.allowance is not None
        assert decision.desired <= seen.allowance.replicas
        assert decision.desired + decision.warm <= seen.allowance.replicas
        assert decision.claim >= decision.desired


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories)
def test_a_decision_tells_its_own_story(settings: PolicySettings, story: list[tuple[float, Observation]]) -> None:
    for _, _, decision in play(settings, story):
        assert decision.steps
        assert ceil(decision.steps[-1].replicas) == decision.desired
        said = " ".join((decision.reason, decision.emission.note, *(step.text for step in decision.steps)))
        assert decision.reason == "steady" or decision.reason in [f"{s.rule}: {s.text}" for s in decision.steps]
        assert "nan" not in said
        assert "None" not in said
        assert "e+" not in said
        assert not any(word.strip("0123456789") == "." and len(word) > 10 for word in said.split())


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories)
def test_the_same_arguments_give_the_same_answer_and_are_not_changed(
    settings: PolicySettings, story: list[tuple[float, Observation]]
) -> None:
    *_, (_, state, _) = play(settings, story)
    seen = replace(story[0][1], time=1e6)
    before = copy.deepcopy(state)
    assert decide(settings, state, seen) == decide(settings, state, seen)
    assert state == before


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories, observations(), st.sampled_from([1.0, 400.0, 86400.0]))
def test_what_is_unknown_never_lowers_the_count(
    settings: PolicySettings, story: list[tuple[float, Observation]], last: Observation, passed: float
) -> None:
    *_, (seen, state, before) = play(settings, story)
    for dark in (
        replace(last.load, unknown={"pod-x": "timeout"}),
        replace(last.load, known=0),
        replace(last.load, waiting=None, running=None, kv_cache_usage=None, generation_token_rate=None),
    ):
        wide = Limits(seen.limits.minimum, max(seen.limits.maximum, before.desired))
        if settings.rules and dark.known and not dark.unknown:
            continue  # rules may speak of what is known
        blind = replace(last, time=seen.time + passed, load=dark, limits=wide)
        assert decide(settings, state, blind)[1].desired >= before.desired


@examples(deadline=None, max_examples=100)
@given(settings_of_all_kinds, stories, observations())
def test_pods_without_a_node_stop_the_count_from_growing_and_lower_it_no_further_than_load_would(
    settings: PolicySettings, story: list[tuple[float, Observation]], last: Observation
) -> None:
    *_, (seen, state, before) = play(settings, story)
    wide = Limits(0, max(seen.limits.maximum, before.desired))
    stuck = replace(last.replicas, unschedulable=3, unschedulable_s=1e6, lacks="nvidia.com/gpu")
    last = replace(last, time=seen.time + 1, limits=wide, replicas=stuck)
    free = decide(settings, state, replace(last, replicas=replace(stuck, unschedulable_s=0.0)))[1]
    blocked = decide(settings, state, last)[1]
    floor = floor_at(settings.min_replicas_schedule, last.utc)
    assert blocked.blocked
    assert not free.blocked
    assert blocked.desired <= max(before.desired, stuck.requested, floor.floor if floor else 0)
    assert blocked.desired >= min(before.desired, free.desired)
    if last.load.waiting != 0 or last.load.unknown:
        assert blocked.desired >= before.desired


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories, st.integers(1, 200))
def test_darkness_changes_nothing_however_long_it_lasts(
    settings: PolicySettings, story: list[tuple[float, Observation]], ticks: int
) -> None:
    *_, (seen, state, decision) = play(settings, story)
    requested = replace(seen.replicas, requested=decision.desired)
    dark = replace(seen, load=Load(unknown={"pod-x": "timeout"}), replicas=requested)
    for i in range(ticks):
        state, after = decide(settings, state, replace(dark, time=seen.time + i))
        assert after.desired == decision.desired


LOADS = ("waiting", "running", "kv_cache_usage", "prompt_token_rate", "generation_token_rate")
SHAPES = ("targetKvCacheUsage", "targetTokensPerSecond", "headroom", "upscalingFactor", "downscalingFactor")


@examples(deadline=None, max_examples=60)
@given(
    st.fixed_dictionaries(
        {"targetOngoingRequests": st.sampled_from([1, 5, 12])}, optional={k: KEYS[k] for k in SHAPES}
    ),
    observations(),
    st.sampled_from(LOADS),
    st.floats(0, 1),
)
def test_more_load_never_wants_fewer(keys: dict[str, object], seen: Observation, name: str, more: float) -> None:
    settings = parse(PolicySettings, {**keys, "downscaleDelay": "0", "startingCredit": "false"})
    value = getattr(seen.load, name)
    if value is None:
        return
    greater = min(1.0, value + more) if name == "kv_cache_usage" else value + more * 100
    loaded = replace(seen, load=replace(seen.load, **{name: greater}))
    assert decide(settings, None, loaded)[1].desired >= decide(settings, None, seen)[1].desired


MORE = ("waiting", "running", "kv_cache_usage", "arrival_rate", "prompt_token_rate")
"""What only more load raises. More generated tokens may also be faster replicas."""


@examples(deadline=None, max_examples=150)
@given(presets, stories, observations(), st.sampled_from(MORE), st.sampled_from([0.01, 0.3, 2.0, 30.0]))
def test_under_every_preset_and_history_more_load_never_wants_fewer(
    settings: PolicySettings, story: list[tuple[float, Observation]], last: Observation, name: str, more: float
) -> None:
    *_, (seen, state, _) = play(settings, story)
    seen = replace(last, time=seen.time + settings.metrics_interval_s)
    if (value := getattr(seen.load, name)) is None:
        return
    greater = min(1.0, value + more) if name == "kv_cache_usage" else value * (1 + more) + more
    loaded = replace(seen, load=replace(seen.load, **{name: greater}))
    # From a million replicas on, a load is taken for a fault of what was read.
    assume(all((getattr(loaded.load, each) or 0) < 1e6 for each in MORE))
    assert decide(settings, state, loaded)[1].desired >= decide(settings, state, seen)[1].desired


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories)
def test_the_same_observation_once_more_wants_the_same(
    settings: PolicySettings, story: list[tuple[float, Observation]]
) -> None:
    *_, (seen, state, decision) = play(settings, story)
    again = decide(settings, state, seen)[1].desired
    if seen.load.unknown:  # such pods count up to what was wanted before, which may just have risen
        assert again >= decision.desired
    else:
        assert again == decision.desired


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, stories, st.sampled_from([0.0, 0.1]))
def test_the_hpa_arrives_at_the_count_or_the_emission_says_why_not(
    settings: PolicySettings, story: list[tuple[float, Observation]], tolerance: float
) -> None:
    story = [(passed, _tolerant(seen, tolerance)) for passed, seen in story]
    for seen, _, decision in play(settings, story):
        emission, limits, current = decision.emission, seen.limits, seen.replicas.current
        hpa = recommend(emission.value, current, tolerance, tolerance)
        assert emission.arrives_at == max(1, limits.minimum, min(limits.maximum, hpa))
        assert emission.arrives_at == decision.desired or emission.note
        if tolerance == 0:
            assert emission.arrives_at == max(1, limits.minimum, min(limits.maximum, decision.desired))


def _tolerant(seen: Observation, tolerance: float) -> Observation:
    return replace(seen, limits=replace(seen.limits, tolerance_up=tolerance, tolerance_down=tolerance))


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, settings_of_all_kinds, stories, observations())
def test_a_changed_configuration_takes_over_the_memory_of_another(
    before: PolicySettings, after: PolicySettings, story: list[tuple[float, Observation]], last: Observation
) -> None:
    *_, (seen, state, _) = play(before, story)
    for memory in (state, state.under_new_settings()):
        decision = decide(after, memory, replace(last, time=seen.time + 1))[1]
        assert last.limits.minimum <= decision.desired <= last.limits.maximum


@examples(deadline=None, max_examples=60)
@given(settings_of_all_kinds, observations())
def test_memory_holds_no_more_than_its_windows(settings: PolicySettings, seen: Observation) -> None:
    state = None
    for i in range(400):
        swing = seen.load.waiting if i % 2 else 1e5
        at = replace(seen, time=i * settings.metrics_interval_s, load=replace(seen.load, waiting=swing))
        state, _ = decide(settings, state, at)
    assert state is not None

    def ticks(seconds: float) -> float:
        return seconds / settings.metrics_interval_s + 2

    limits = (limit.period_s for limit in (settings.upscale_limit, settings.downscale_limit) if limit)
    record = state.record
    assert max(map(len, (record.past, record.pending, record.came, *record.errors))) <= 310
    assert len(state.changes) <= ticks(max(limits, default=0.0))
    assert len(state.up_window) <= ticks(settings.upscale_delay_s)
    assert len(state.down_window) <= ticks(settings.downscale_delay_s)
    assert len(state.streaks) == len(settings.rules)
