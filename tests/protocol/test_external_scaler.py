"""KEDA's unary calls: what it gets, and which errors make it hold."""

from __future__ import annotations

import asyncio
import math
import re

import grpc
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from scaler.serving import guard
from scaler.serving.external_scaler import metric_name, metric_value
from scaler.serving.guard import Guard
from scaler.serving.metrics import RpcMetrics
from scaler.serving.protocol import externalscaler_pb2 as pb
from scaler.serving.protocol.externalscaler_pb2_grpc import ExternalScalerServicer, add_ExternalScalerServicer_to_server
from scaler.targets import Targets, World, trigger_id
from tests.protocol.world import POLICY, Fleet, Keda, hosted, until


async def test_metric_spec_is_one_metric_with_target_one_in_both_fields(keda: Keda) -> None:
    spec = await keda.spec()
    assert (spec.targetSize, spec.targetSizeFloat) == (1, 1.0)


async def test_metric_spec_never_fails_for_a_valid_trigger(fleet: Fleet, keda: Keda) -> None:
    before = await keda.spec()
    fleet.missing = "no such ScaledObject"
    fleet.silent = True
    assert await keda.spec() == before


async def test_an_invalid_trigger_has_a_metric_too_so_that_no_hpa_is_made_without_one(
    channel: grpc.aio.Channel,
) -> None:
    wrong, right = Keda(channel, {"upscaleDelay": "soon"}), Keda(channel, {"upscaleDelay": "5s"})
    one, other = await wrong.spec(), await right.spec()
    assert (one.targetSize, one.targetSizeFloat) == (other.targetSize, other.targetSizeFloat)
    assert one.metricName != other.metricName


async def test_metric_spec_stays_the_same_whatever_the_load(fleet: Fleet, keda: Keda) -> None:
    before = await keda.spec()
    fleet.waiting = 100
    await until(lambda: _is(keda, 10))
    assert await keda.spec() == before


async def test_two_triggers_of_a_scaled_object_have_metrics_of_their_own(channel: grpc.aio.Channel) -> None:
    one, two = Keda(channel), Keda(channel, {**POLICY, "targetOngoingRequests": "5"})
    assert (await one.spec()).metricName != (await two.spec()).metricName


async def test_keys_that_only_tell_keda_how_to_connect_make_no_other_target(channel: grpc.aio.Channel) -> None:
    plain, secure = Keda(channel), Keda(channel, {**POLICY, "enableTLS": "true"})
    assert await plain.spec() == await secure.spec()


async def test_metric_is_one_value_named_as_the_spec_names_it(fleet: Fleet, keda: Keda) -> None:
    fleet.waiting = 25
    await until(lambda: _is(keda, 3))
    value = await keda.metric()
    assert value.metricName == (await keda.spec()).metricName
    assert value.metricValue == math.ceil(value.metricValueFloat)


async def test_the_count_follows_the_queue_up_and_down(fleet: Fleet, keda: Keda) -> None:
    fleet.waiting, fleet.running = 55, 10
    await until(lambda: _is(keda, 7), "7 replicas for 65 requests")
    fleet.waiting, fleet.running = 0, 8
    await until(lambda: _is(keda, 1), "1 replica for 8 requests")


async def test_a_brand_new_target_waits_for_its_first_decision(fleet: Fleet, keda: Keda) -> None:
    fleet.waiting = 45
    assert (await keda.metric()).metricValueFloat > 0
    assert fleet.asked >= 1


async def test_calls_do_not_ask_the_pods(fleet: Fleet, channel: grpc.aio.Channel) -> None:
    slow = Keda(channel, {**POLICY, "metricsInterval": "10s"})
    await slow.metric()
    for _ in range(20):
        await slow.metric()
        await slow.active()
    assert fleet.asked == 1


async def test_a_target_that_cannot_be_seen_is_an_error_with_the_reason_and_never_zero(
    fleet: Fleet, keda: Keda
) -> None:
    fleet.missing = "ScaledObject serving/llama: there is none"
    code, text = await keda.refusal(Keda.metric)
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "there is none" in text


async def test_stale_knowledge_is_an_error_with_the_reason(fleet: Fleet, channel: grpc.aio.Channel) -> None:
    fleet.minimum = 1
    keda = Keda(channel, {**POLICY, "staleness": "0.5s"})
    fleet.waiting = 30
    await until(lambda: _is(keda, 3))
    fleet.silent = True

    async def stale() -> bool:
        try:
            await keda.metric()
        except grpc.aio.AioRpcError as error:
            return error.code() is grpc.StatusCode.UNAVAILABLE and "connection refused" in (error.details() or "")
        return False

    await until(stale, "UNAVAILABLE with the pods' own reason")
    fleet.silent = False
    await until(lambda: _is(keda, 3), "an answer again")


async def test_every_problem_of_the_metadata_is_told_at_once(channel: grpc.aio.Channel) -> None:
    wrong = Keda(channel, {"targetOngoingRequest": "5", "upscaleDelay": "soon", "headroom": "-1"})
    for call in (Keda.metric, Keda.active):
        code, text = await wrong.refusal(call)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        for part in ("did you mean targetOngoingRequests?", "upscaleDelay: 'soon'", "headroom: '-1'"):
            assert part in text


async def test_a_trigger_that_becomes_invalid_keeps_its_last_valid_configuration(
    fleet: Fleet, channel: grpc.aio.Channel
) -> None:
    fleet.waiting = 40
    valid, wrong = Keda(channel), Keda(channel, {**POLICY, "upscaleDelay": "soon"})
    await until(lambda: _is(valid, 4))
    assert await wrong.spec() == await valid.spec()
    assert await wrong.value() == await valid.value()


async def test_activity_is_true_while_requests_run_and_false_when_all_is_quiet(fleet: Fleet, keda: Keda) -> None:
    fleet.running = 1
    await until(keda.active, "active")
    fleet.running = 0
    await until(lambda: _is_not(keda), "idle")


async def test_pods_that_load_count_as_activity(fleet: Fleet, keda: Keda) -> None:
    fleet.ready, fleet.starting = 0, 1
    assert await keda.active()


async def test_a_method_that_hangs_ends_at_the_servers_deadline() -> None:
    class Hanging(ExternalScalerServicer):
        async def IsActive(self, request: object, context: object) -> pb.IsActiveResponse:  # noqa: N802
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    metrics = RpcMetrics(CollectorRegistry())
    server = grpc.aio.server(interceptors=[Guard(metrics, asyncio.Event(), deadline_s=0.2)])
    add_ExternalScalerServicer_to_server(Hanging(), server)  # type: ignore[abstract]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        code, text = await Keda(channel).refusal(Keda.active)
    await server.stop(0)
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "deadline of 0.2 s" in text


async def test_calls_that_come_all_at_once_are_all_answered(keda: Keda) -> None:
    specs = await asyncio.gather(*(keda.spec() for _ in range(4000)))
    assert {spec.targetSizeFloat for spec in specs} == {1.0}


async def test_a_long_list_of_problems_still_reaches_the_client(channel: grpc.aio.Channel) -> None:
    wrong = Keda(channel, {f"noSuchKey{i}→": "é" * 50 for i in range(90)})
    code, text = await wrong.refusal(Keda.metric)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "noSuchKey" in text
    assert len(text.encode()) <= guard.LONGEST_MESSAGE


async def test_a_fleet_in_shadow_is_answered_with_the_present_count(fleet: Fleet) -> None:
    fleet.ready, fleet.waiting = 2, 90
    targets = Targets(World(fleet, fleet, shadow=True))
    async with hosted(fleet, targets=targets) as host, grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        keda = Keda(channel)
        assert await keda.value() == 2
        (target,) = targets
        assert target.latest is not None
        assert target.latest.decision.desired == 9


@given(queue=st.integers(1, 1_000_000), seconds=st.integers(0, 100_000))
def test_metric_name_has_only_characters_that_every_api_keeps(queue: int, seconds: int) -> None:
    metadata = {"targetOngoingRequests": str(queue), "upscaleDelay": f"{seconds}s"}
    name = metric_name(trigger_id(metadata))
    assert re.fullmatch(r"[a-z0-9-]{1,60}", name)
    assert name == metric_name(trigger_id(dict(reversed(metadata.items()))))


@given(st.floats(0, 1e6))
def test_the_integer_rounds_up_so_that_old_versions_of_keda_arrive_too(value: float) -> None:
    fleet = Fleet()
    (answer,) = metric_value(Targets(World(fleet, fleet)).find("ns", "name", POLICY), value).metricValues
    assert (answer.metricValueFloat, answer.metricValue) == (value, math.ceil(value))


async def _is(keda: Keda, replicas: int) -> bool:
    return math.ceil(await keda.value() - 1e-9) == replicas


async def _is_not(keda: Keda) -> bool:
    return not await keda.active()
