"""The read-only service: what people and pages are told about targets."""

from __future__ import annotations

import asyncio
import time

import grpc
import pytest

from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from tests.protocol.world import NAME, NAMESPACE, PATIENCE_S, POLICY, Fleet, Keda, until

REF = pb.TargetRef(namespace=NAMESPACE, name=NAME)


@pytest.fixture
def insight(channel: grpc.aio.Channel) -> InsightStub:
    return InsightStub(channel)


async def test_an_explanation_holds_the_decision_and_all_its_inputs(
    fleet: Fleet, keda: Keda, insight: InsightStub
) -> None:
    fleet.ready, fleet.starting, fleet.waiting, fleet.running = 2, 1, 45, 3
    value = await keda.metric()
    told = await insight.Explain(REF)
    assert (told.namespace, told.name, told.policy, told.state) == (NAMESPACE, NAME, "adaptive", pb.ACTIVE)
    assert value.metricName.endswith(told.trigger)
    assert told.emission.value == value.metricValueFloat
    assert told.replicas == pb.Replicas(desired=5, requested=3, current=3, ready=2, starting=1, minimum=0, maximum=20)
    assert told.load == pb.Load(known_pods=2, waiting=45, running=3, kv_cache_usage=0.125)
    assert told.steps
    assert max(told.demand.values()) == pytest.approx(4.8)
    assert abs(told.time - time.time()) < PATIENCE_S
    assert "5 replicas" in told.story


async def test_an_explanation_names_every_pod_and_what_it_said(fleet: Fleet, keda: Keda, insight: InsightStub) -> None:
    fleet.ready, fleet.starting, fleet.waiting = 1, 1, 4
    await keda.metric()
    ready, starting = (await insight.Explain(REF)).pods
    assert (ready.phase, ready.waiting, ready.running, ready.unknown) == ("ready", 4, 0, "")
    assert starting.phase == "starting"
    assert not starting.HasField("waiting")
    assert starting.phase_seconds == pytest.approx(30, abs=PATIENCE_S)


async def test_an_unknown_pod_has_its_reason_and_no_values(fleet: Fleet, keda: Keda, insight: InsightStub) -> None:
    await keda.metric()
    fleet.silent = True
    await until(lambda: _told_unknown(insight), "the pod to be unknown")
    told = await insight.Explain(REF)
    assert told.pods[0].unknown == "connection refused"
    assert not told.pods[0].HasField("waiting")
    assert told.load == pb.Load(known_pods=0, unknown_pods=1)


async def test_a_target_that_nobody_knows_is_not_found_and_the_known_ones_are_named(
    keda: Keda, insight: InsightStub
) -> None:
    await keda.metric()
    code, text = await keda.refusal(lambda _: insight.Explain(pb.TargetRef(namespace="serving", name="qwen")))
    assert code is grpc.StatusCode.NOT_FOUND
    assert "serving/llama" in text


async def test_before_the_first_decision_the_reason_is_told(fleet: Fleet, keda: Keda, insight: InsightStub) -> None:
    fleet.missing = "serving/llama: no such ScaledObject"
    await keda.spec()

    async def told() -> bool:
        code, text = await keda.refusal(lambda _: insight.Explain(REF))
        return code is grpc.StatusCode.UNAVAILABLE and "no such ScaledObject" in text

    await until(told, "UNAVAILABLE with the reason")
    (target,) = (await insight.ListTargets(pb.ListTargetsRequest())).targets
    assert target.state == pb.WAITING
    assert "no such ScaledObject" in target.reason
    assert not target.HasField("replicas")


async def test_watch_tells_the_latest_decision_and_then_every_later_one(
    fleet: Fleet, keda: Keda, insight: InsightStub
) -> None:
    await keda.metric()
    stream = insight.Watch(REF)
    times = [(await asyncio.wait_for(stream.read(), PATIENCE_S)).time for _ in range(4)]
    assert times == sorted(set(times))
    fleet.waiting = 70
    async with asyncio.timeout(PATIENCE_S):
        while (told := await stream.read()).replicas.desired != 7:
            pass
    assert told.last_change
    assert told.last_change_time > 0


async def test_a_watch_goes_on_with_the_trigger_that_takes_the_place_of_another(
    channel: grpc.aio.Channel, keda: Keda, insight: InsightStub
) -> None:
    before = (await keda.metric()).metricName.rpartition("-")[2]
    stream = insight.Watch(REF)
    assert (await asyncio.wait_for(stream.read(), PATIENCE_S)).trigger == before
    after = (await Keda(channel, {**POLICY, "targetOngoingRequests": "5"}).metric()).metricName.rpartition("-")[2]
    async with asyncio.timeout(PATIENCE_S):
        while (await stream.read()).trigger != after:
            pass


async def test_each_trigger_is_told_by_its_name_and_without_one_the_last_asked_for(
    channel: grpc.aio.Channel, keda: Keda, insight: InsightStub
) -> None:
    other = Keda(channel, {**POLICY, "targetOngoingRequests": "5"})
    triggers = [(await one.metric()).metricName.rpartition("-")[2] for one in (keda, other)]
    assert (await insight.Explain(REF)).trigger == triggers[-1]
    for trigger in triggers:
        told = await insight.Explain(pb.TargetRef(namespace=NAMESPACE, name=NAME, trigger=trigger))
        assert told.trigger == trigger


async def test_targets_are_listed_in_order_and_by_namespace(channel: grpc.aio.Channel, insight: InsightStub) -> None:
    for namespace, name in (("b", "two"), ("a", "three"), ("b", "one")):
        keda = Keda(channel)
        keda.ref.namespace, keda.ref.name = namespace, name
        await keda.metric()
    everything = (await insight.ListTargets(pb.ListTargetsRequest())).targets
    assert [f"{t.namespace}/{t.name}" for t in everything] == ["a/three", "b/one", "b/two"]
    some = (await insight.ListTargets(pb.ListTargetsRequest(namespace="b"))).targets
    assert [t.name for t in some] == ["one", "two"]
    assert some[0].replicas.maximum == 20


async def test_a_newer_configuration_that_is_invalid_shows_as_a_warning(
    channel: grpc.aio.Channel, keda: Keda, insight: InsightStub
) -> None:
    await keda.metric()
    await Keda(channel, {**POLICY, "upscaleDelay": "soon"}).spec()
    (warning,) = (await insight.Explain(REF)).warnings
    assert "upscaleDelay: 'soon'" in warning


async def _told_unknown(insight: InsightStub) -> bool:
    return bool((await insight.Explain(REF)).load.unknown_pods)
