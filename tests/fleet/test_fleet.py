"""Simulated pods over real HTTP: they start, answer as vLLM does, fail as they are told to, drain and go."""

from __future__ import annotations

import asyncio
import math
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from inference.simulated import Fault, Fleet, PodState, Request, Verdict
from inference.simulated.faults import OVERSIZED_BYTES
from inference.simulated.server import FleetServer, loopback_ips
from inference.simulated.traffic import arrivals, constant

DEADLINE = aiohttp.ClientTimeout(total=60)
IMPATIENT = aiohttp.ClientTimeout(total=0.3)


class Clock:
    """A clock that stands until it is put forward."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class World:
    """A served fleet, its clock, and a client."""

    def __init__(self, server: FleetServer, clock: Clock, client: aiohttp.ClientSession) -> None:
        self.server, self.clock, self.client = server, clock, client
        self.fleet = server.fleet

    async def at(self, time: float) -> None:
        self.clock.now = time
        await self.server.play()

    def url(self, pod: str, path: str = "/metrics") -> str:
        return f"http://{self.server.address(pod)}{path}"

    async def get(self, pod: str, path: str = "/metrics") -> tuple[int, bytes]:
        async with self.client.get(self.url(pod, path)) as response:
            return response.status, await response.read()

    async def page(self, pod: str) -> str:
        status, body = await self.get(pod)
        assert status == 200
        return body.decode()


@asynccontextmanager
async def world(fleet: Fleet, **options: object) -> AsyncIterator[World]:
    clock = Clock()
    async with (
        FleetServer(fleet, clock, **options) as server,
        aiohttp.ClientSession(timeout=DEADLINE) as client,
    ):
        yield World(server, clock, client)


def value(page: str, name: str) -> float:
    """The sum of a family's samples of this name."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name
    )


def busy_fleet(pods: int = 1) -> Fleet:
    fleet = Fleet([Request(1.0, 1000, 2000) for _ in range(6)])
    fleet.scale(pods, 0.0)
    return fleet


async def test_a_ready_pod_answers_as_vllm_does() -> None:
    async with world(busy_fleet(), model_name="tiny") as w:
        await w.at(5.0)
        async with w.client.get(w.url("pod-0")) as response:
            assert response.headers["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"
            page = await response.text()
        assert value(page, "vllm:num_requests_running") == 6
        assert 'model_name="tiny"' in page
        async with w.client.get(w.url("pod-0", "/metrics/")) as response:
            assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert await response.text() == page
        assert await w.get("pod-0", "/health") == (200, b"")
        assert await w.get("pod-0", "/version") == (200, b'{"version": "0.32.0"}')
        assert (await w.get("pod-0", "/v2"))[0] == 404


async def test_a_filtered_read_is_small_and_ignored_without_the_slash() -> None:
    query = "?name[]=vllm:num_requests_waiting&name[]=vllm:num_requests_running"
    async with world(busy_fleet()) as w:
        await w.at(5.0)
        _, filtered = await w.get("pod-0", f"/metrics/{query}")
        assert [line.split("{")[0] for line in filtered.decode().splitlines() if line[0] != "#"] == [
            "vllm:num_requests_running",
            "vllm:num_requests_waiting",
        ]
        assert len((await w.get("pod-0", f"/metrics{query}"))[1]) > 40_000


async def test_a_filtered_read_comes_back_empty_in_multi_process_mode() -> None:
    async with world(busy_fleet(), multi_process=True) as w:
        await w.at(5.0)
        assert await w.get("pod-0", "/metrics/?name[]=vllm:num_requests_waiting") == (200, b"")
        assert value(await w.page("pod-0"), "vllm:num_requests_running") == 6


async def test_a_page_is_as_fresh_as_the_clock() -> None:
    async with world(busy_fleet()) as w:
        await w.at(5.0)
        before = value(await w.page("pod-0"), "vllm:generation_tokens_total")
        w.clock.now = 10.0  # nobody plays the fleet but the read itself
        assert value(await w.page("pod-0"), "vllm:generation_tokens_total") > before


async def test_the_fleet_plays_on_by_itself() -> None:
    async with world(busy_fleet()) as w:
        w.clock.now = 1000.0
        async with asyncio.timeout(60):
            while len(w.server.outcomes) < 6:
                await w.get("pod-0", "/health")
    assert {outcome.verdict for outcome in w.server.outcomes} == {Verdict.SERVED}


async def test_a_starting_pod_has_an_address_that_refuses_until_it_is_ready() -> None:
    fleet = Fleet(start_up_s=30.0)
    fleet.scale(1, 0.0)
    async with world(fleet) as w:
        address = w.server.address("pod-0")
        with pytest.raises(aiohttp.ClientConnectorError):
            await w.get("pod-0")
        await w.at(29.0)
        with pytest.raises(aiohttp.ClientConnectorError):
            await w.get("pod-0")
        await w.at(30.0)
        assert value(await w.page("pod-0"), "vllm:num_requests_running") == 0
        assert w.server.address("pod-0") == address


async def test_a_draining_pod_serves_its_page_until_its_last_request_and_loses_none() -> None:
    fleet = Fleet(arrivals(constant(2.0), 30.0, seed=1))
    fleet.scale(2, 0.0)
    async with world(fleet) as w:
        await w.at(20.0)
        w.fleet.drain("pod-1", 20.0)
        leaving = w.fleet.pods["pod-1"]
        had = leaving.engine.outstanding
        assert had > 0
        await w.at(21.0)
        url = w.url("pod-1")
        assert await w.get("pod-1", "/health") == (200, b"")
        assert value(await w.page("pod-1"), "vllm:num_requests_running") == had
        await w.at(200.0)
        assert leaving.state is PodState.GONE
        assert set(w.server.addresses) == {"pod-0"}
        with pytest.raises(aiohttp.ClientConnectorError):
            await w.client.get(url)
        assert {outcome.verdict for outcome in w.server.outcomes} == {Verdict.SERVED}
        assert w.fleet.idle


async def test_pods_that_come_later_are_served_too() -> None:
    async with world(Fleet()) as w:
        assert w.server.addresses == {}
        w.fleet.scale(3, 0.0)
        await w.server.play()
        assert len(set(w.server.addresses.values())) == 3
        for pod in w.server.addresses:
            assert value(await w.page(pod), "vllm:num_requests_waiting") == 0


async def test_pods_can_have_an_ip_each_and_one_port() -> None:
    with socket.create_server(("127.9.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    fleet = busy_fleet(pods=2)
    async with world(fleet, addresses=loopback_ips("127.9.0.0/29", port)) as w:
        await w.at(5.0)
        assert w.server.addresses == {"pod-0": f"127.9.0.1:{port}", "pod-1": f"127.9.0.2:{port}"}
        assert [value(await w.page(pod), "vllm:num_requests_running") for pod in w.fleet.pods] == [3, 3]


@pytest.mark.parametrize(("fault", "waiting"), [(Fault.NAN, math.nan), (Fault.NEGATIVE, -7.0), (Fault.HUGE, 1e300)])
async def test_a_pod_that_lies_does_so_in_its_load_gauges_only(fault: Fault, waiting: float) -> None:
    async with world(busy_fleet()) as w:
        await w.at(5.0)
        honest = await w.page("pod-0")
        w.server.faults["pod-0"] = fault
        page = await w.page("pod-0")
        for gauge in ("num_requests_waiting", "num_requests_running", "kv_cache_usage_perc"):
            assert value(page, f"vllm:{gauge}") == pytest.approx(waiting, nan_ok=True)
        said = "vllm:generation_tokens_total"
        assert value(page, said) == value(honest, said) > 0


async def test_garbage_is_no_text_and_an_empty_page_is_empty() -> None:
    async with world(busy_fleet()) as w:
        w.server.faults["pod-0"] = Fault.GARBAGE
        status, body = await w.get("pod-0")
        assert status == 200
        with pytest.raises(UnicodeDecodeError):
            body.decode()
        w.server.faults["pod-0"] = Fault.EMPTY
        assert await w.get("pod-0") == (200, b"")


async def test_an_oversized_page_is_legal_and_ends_with_the_real_one() -> None:
    async with world(busy_fleet()) as w:
        await w.at(5.0)
        honest = await w.get("pod-0")
        w.server.faults["pod-0"] = Fault.OVERSIZED
        status, body = await w.get("pod-0")
        assert status == 200
        assert len(body) > OVERSIZED_BYTES
        assert body.endswith(honest[1])
        head = body[: body.index(b"# HELP filler_1 ")].decode()
        (family,) = text_string_to_metric_families(head)
        assert len(family.samples) == 2000


async def test_an_unavailable_pod_answers_503_everywhere() -> None:
    async with world(busy_fleet()) as w:
        w.server.faults["pod-0"] = Fault.UNAVAILABLE
        for path in ("/metrics", "/metrics/", "/health", "/version"):
            assert (await w.get("pod-0", path))[0] == 503


async def test_a_pod_that_resets_cuts_the_connection() -> None:
    async with world(busy_fleet()) as w:
        w.server.faults["pod-0"] = Fault.RESET
        host, port = w.server.address("pod-0").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: pod\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 60)
        writer.close()


async def test_a_hung_pod_takes_the_request_and_never_answers_while_others_do() -> None:
    async with world(busy_fleet(pods=2)) as w:
        w.server.faults["pod-0"] = Fault.HUNG
        host, port = w.server.address("pod-0").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: pod\r\n\r\n")
        answer = asyncio.ensure_future(reader.read(1))
        for _ in range(20):
            await w.page("pod-1")
        assert not answer.done()
        with pytest.raises(TimeoutError):
            await w.client.get(w.url("pod-0"), timeout=IMPATIENT)
        del w.server.faults["pod-0"]
        assert "vllm:" in await w.page("pod-0")
        answer.cancel()
        writer.close()


async def test_a_slow_pod_is_too_late_for_the_impatient_and_answers_the_patient() -> None:
    async with world(busy_fleet(), slow_s=1.0) as w:
        w.server.faults["pod-0"] = Fault.SLOW
        with pytest.raises(TimeoutError):
            await w.client.get(w.url("pod-0"), timeout=IMPATIENT)
        assert "vllm:num_requests_running" in await w.page("pod-0")


async def test_an_endless_page_goes_on_until_its_reader_leaves() -> None:
    async with world(busy_fleet(pods=2)) as w:
        w.server.faults["pod-0"] = Fault.ENDLESS
        async with w.client.get(w.url("pod-0")) as response:
            assert len(await response.content.readexactly(OVERSIZED_BYTES * 2)) == OVERSIZED_BYTES * 2
        assert "vllm:" in await w.page("pod-1")


async def test_a_server_with_hung_readers_still_closes() -> None:
    async with world(busy_fleet(pods=2)) as w:
        w.server.faults["pod-0"] = Fault.HUNG
        host, port = w.server.address("pod-0").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: pod\r\n\r\n")
        for _ in range(20):
            await w.page("pod-1")
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()


async def test_a_fault_goes_with_its_pod() -> None:
    async with world(busy_fleet()) as w:
        w.server.faults["pod-0"] = Fault.HUNG
        w.fleet.kill("pod-0", 0.0)
        await w.at(0.5)
        assert w.server.faults == {}
        with pytest.raises(KeyError):
            w.server.address("pod-0")


def test_a_pod_can_be_served_from_the_command_line() -> None:
    command = (sys.executable, "-m", "inference.simulated", "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            with urllib.request.urlopen(process.stdout.readline().strip(), timeout=60) as page:
                assert b"vllm:num_requests_waiting{" in page.read()
        finally:
            process.terminate()


@pytest.mark.parametrize("options", [("--port", "65536"), ("--pods", "0"), ("--rate", "nan"), ("--rate", "0")])
def test_wrong_options_of_the_command_line_are_named(options: tuple[str, str]) -> None:
    command = (sys.executable, "-m", "inference.simulated", *options)
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2
    assert f"{options[0]} {options[1]}: right is" in run.stderr
