"""Whether this replica is the one to ask, as health checks and the kubelet's probes see it; and how it stops."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from scaler.serving import guard
from scaler.serving.host import Host, Ports
from scaler.serving.server import SERVICES
from scaler.targets import Targets, World
from tests.protocol.world import LOOPBACK, PATIENCE_S, Fleet, Keda, hosted, until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def test_calls_that_arrive_as_the_server_stops_are_answered(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "QUIET_S", 0.5)
    monkeypatch.setattr(guard, "QUIET_AT_MOST_S", PATIENCE_S)
    server = contextlib.AsyncExitStack()
    host = await server.enter_async_context(hosted(fleet))
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        keda = Keda(channel)
        await keda.metric()
        calls = [keda.stub.IsActive(keda.ref) for _ in range(300)]
        await calls[0]  # the others came with it
        stopping = asyncio.create_task(server.aclose())
        codes = {await asyncio.wait_for(call.code(), PATIENCE_S) for call in calls}
        await stopping
    assert codes == {grpc.StatusCode.OK}


async def test_a_standby_is_not_serving_until_it_leads(fleet: Fleet) -> None:
    async with hosted(fleet, leading=False) as host:
        assert await _health(host) == [NOT_SERVING] * 3
        assert await _get(host, "/readyz") == (503, "standby: another replica leads\n")
        assert await _get(host, "/healthz") == (200, "ok\n")
        await host.lead()
        assert await _health(host) == [SERVING] * 3
        assert await _get(host, "/readyz") == (200, "ok\n")


async def test_a_standby_is_warm_and_knows_the_answer_when_it_takes_over(fleet: Fleet) -> None:
    fleet.waiting = 35
    async with (
        hosted(fleet, leading=False) as host,
        grpc.aio.insecure_channel(str(host.grpc_address)) as channel,
    ):
        keda = Keda(channel)
        await keda.metric()
        asked = fleet.asked
        await until(lambda: fleet.asked > asked, "ticks before it leads")
        await host.lead()
        assert await keda.value() == 4


async def test_a_leader_that_stands_by_sends_keda_away_and_stays_warm(fleet: Fleet) -> None:
    fleet.waiting = 35
    async with hosted(fleet) as host, grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        keda = Keda(channel)
        stream = keda.stub.StreamIsActive(keda.ref)
        await stream.read()
        address = host.grpc_address
        handing_over = asyncio.create_task(host.stand_by())
        async with asyncio.timeout(PATIENCE_S):
            while await stream.read() is not grpc.aio.EOF:
                pass
            assert await stream.code() is grpc.StatusCode.OK
        await handing_over
        assert host.grpc_address == address
        assert await _health(host) == [NOT_SERVING] * 3
        assert (await _get(host, "/readyz"))[0] == 503
        asked = fleet.asked
        await until(lambda: fleet.asked > asked, "ticks on standby")
        await host.lead()
        assert await _health(host) == [SERVING] * 3
        assert await keda.value() == 4


async def test_a_server_that_stops_is_not_serving_while_calls_in_flight_finish(fleet: Fleet) -> None:
    fleet.missing = "not yet"  # so that the call waits for a first decision
    server = contextlib.AsyncExitStack()
    host = await server.enter_async_context(hosted(fleet))
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        keda = Keda(channel)
        call = asyncio.create_task(keda.refusal(lambda k: k.stub.IsActive(k.ref)))
        await until(lambda: _knows_a_target(host), "the call to be in flight")
        stopping = asyncio.create_task(server.aclose())
        assert (await asyncio.wait_for(watch.read(), PATIENCE_S)).status == NOT_SERVING
        assert (await call)[0] is grpc.StatusCode.UNAVAILABLE
        await stopping


async def test_the_port_of_a_stopped_server_is_closed(fleet: Fleet) -> None:
    async with hosted(fleet) as host:
        address = host.grpc_address
    with pytest.raises(OSError, match="onnect"):
        await asyncio.open_connection(address.host, address.port)


async def test_a_port_in_use_is_one_clear_line(fleet: Fleet, host: Host) -> None:
    for ports, use in ((Ports(host.grpc_address, LOOPBACK), "gRPC"), (Ports(LOOPBACK, host.http_address), "HTTP")):
        with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1:\d+ for {use}"):
            async with Host(Targets(World(fleet, fleet)), ports):
                raise AssertionError("it listens")


async def _health(host: Host) -> list[int]:
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answers = [await stub.Check(health_pb2.HealthCheckRequest(service=name)) for name in ("", *SERVICES)]
    return [answer.status for answer in answers]


async def _get(host: Host, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{host.http_address}{path}") as answer:
        return answer.status, await answer.text()


async def _knows_a_target(host: Host) -> bool:
    return "vllm_scaler_target_state{" in (await _get(host, "/metrics"))[1]
