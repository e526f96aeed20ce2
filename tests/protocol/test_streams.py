"""KEDA's streams: what is pushed, how often, and how they end."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import pytest

from scaler.serving import external_scaler, guard
from scaler.serving.protocol import externalscaler_pb2 as pb
from tests.protocol.world import PATIENCE_S, POLICY, Fleet, Keda, hosted

Stream = grpc.aio.UnaryStreamCall[pb.ScaledObjectRef, pb.IsActiveResponse]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats come soon, so that tests need not wait for them."""
    monkeypatch.setattr(external_scaler, "REPEAT_S", 0.3)
    monkeypatch.setattr(external_scaler, "REPEAT_AT_ZERO_S", 0.1)


async def test_the_present_state_is_told_at_once(fleet: Fleet, keda: Keda) -> None:
    fleet.running = 1
    assert await _next(keda.stub.StreamIsActive(keda.ref)) is True


async def test_an_idle_target_is_told_to_be_idle_once(fleet: Fleet, keda: Keda) -> None:
    stream = keda.stub.StreamIsActive(keda.ref)
    assert await _next(stream) is False
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stream.read(), 1.0)  # ten ticks, and ten times the interval of repeats


async def test_true_is_repeated_while_active_because_keda_may_have_dropped_the_first(fleet: Fleet, keda: Keda) -> None:
    fleet.waiting = 1
    stream = keda.stub.StreamIsActive(keda.ref)
    assert [await _next(stream) for _ in range(4)] == [True] * 4


async def test_where_keda_has_no_zero_to_go_to_true_is_not_repeated_every_few_seconds(fleet: Fleet, keda: Keda) -> None:
    fleet.minimum, fleet.waiting = 1, 1
    await keda.value()
    stream = keda.stub.StreamIsActive(keda.ref)
    assert await _next(stream) is True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stream.read(), 1.0)  # ten ticks, and three times the interval elsewhere


async def test_edges_are_told_as_they_come(fleet: Fleet, keda: Keda) -> None:
    stream = keda.stub.StreamIsActive(keda.ref)
    assert await _next(stream) is False
    fleet.waiting = 1
    assert await _next(stream) is True
    fleet.waiting = 0
    while await _next(stream):
        pass  # repeats that were on their way
    fleet.running = 1
    assert await _next(stream) is True


async def test_what_cannot_be_told_is_never_pushed_as_idle(fleet: Fleet, keda: Keda) -> None:
    fleet.missing = "the API server does not answer"
    stream = keda.stub.StreamIsActive(keda.ref)
    reading = asyncio.ensure_future(stream.read())
    done, _ = await asyncio.wait({reading}, timeout=0.5)
    assert not done
    fleet.missing, fleet.waiting = "", 1
    assert (await asyncio.wait_for(reading, PATIENCE_S)).result is True


async def test_pods_that_cannot_be_read_stay_active_so_that_keda_never_goes_to_zero(
    fleet: Fleet, channel: grpc.aio.Channel
) -> None:
    keda = Keda(channel, {**POLICY, "staleness": "0.3s"})
    stream = keda.stub.StreamIsActive(keda.ref)
    assert await _next(stream) is False
    fleet.silent = True
    assert [await _next(stream) for _ in range(5)] == [True] * 5
    assert await keda.value() == fleet.ready


async def test_invalid_metadata_end_a_stream_with_all_problems(channel: grpc.aio.Channel) -> None:
    wrong = Keda(channel, {"upscaleDelay": "soon", "headroom": "-1"})
    for stream in (wrong.stub.StreamIsActive(wrong.ref), wrong.stub.StreamMetricSpec(wrong.ref)):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stream.read()
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "upscaleDelay" in str(error.value.details())
        assert "headroom" in str(error.value.details())


async def test_the_metric_spec_is_streamed_at_once_equal_to_the_unary_one_and_stays_open(keda: Keda) -> None:
    stream = keda.stub.StreamMetricSpec(keda.ref)
    answer = await asyncio.wait_for(stream.read(), PATIENCE_S)
    assert list(answer.metricSpecs) == [await keda.spec()]
    reading = asyncio.ensure_future(stream.read())
    done, _ = await asyncio.wait({reading}, timeout=0.5)
    assert not done
    reading.cancel()


async def test_streams_end_with_ok_when_the_server_stops(fleet: Fleet) -> None:
    fleet.waiting = 1
    server = contextlib.AsyncExitStack()
    host = await server.enter_async_context(hosted(fleet))
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        keda = Keda(channel)
        streams = [keda.stub.StreamIsActive(keda.ref), keda.stub.StreamMetricSpec(keda.ref)]
        for stream in streams:
            await stream.read()
        stopping = asyncio.create_task(server.aclose())
        assert [await _end(stream) for stream in streams] == [grpc.StatusCode.OK] * 2
        await stopping


async def test_a_stream_ends_with_ok_before_the_connection_would_be_broken(
    fleet: Fleet, keda: Keda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "STREAM_LIFE_S", 0.3)
    assert await _end(keda.stub.StreamIsActive(keda.ref)) is grpc.StatusCode.OK


async def test_a_hundred_streams_leave_unary_calls_their_room(keda: Keda) -> None:
    streams = [keda.stub.StreamIsActive(keda.ref) for _ in range(100)]
    streams += [keda.stub.StreamMetricSpec(keda.ref) for _ in range(100)]
    await asyncio.gather(*(stream.read() for stream in streams))
    assert (await asyncio.wait_for(keda.metric(), PATIENCE_S)).metricValueFloat >= 0


async def _next(stream: Stream) -> bool:
    answer = await asyncio.wait_for(stream.read(), PATIENCE_S)
    assert isinstance(answer, pb.IsActiveResponse), "the stream ended"
    return answer.result


async def _end(stream: Stream) -> grpc.StatusCode:
    """Read to the end; the status it ended with."""
    async with asyncio.timeout(PATIENCE_S):
        while await stream.read() is not grpc.aio.EOF:
            pass
        return await stream.code()
