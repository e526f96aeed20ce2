"""Simulated vLLM pods with every fault there is: what a source makes of each, and of the pods beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from inference.simulated import Fault, Fleet
from inference.simulated.server import FleetServer
from inference.simulated.traffic import arrivals, constant
from scaler.exposition.sample import Sample
from scaler.sources.pods import PodSource
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from tests.fleet.web import until

PODS = 5
NOW = 30.0


@pytest.fixture
async def server() -> AsyncIterator[FleetServer]:
    """A fleet under load, its clock standing still."""
    fleet = Fleet(arrivals(constant(20.0), NOW, seed=1))
    for _ in range(PODS):
        fleet.add(0.0)
    async with FleetServer(fleet, lambda: NOW) as running:
        yield running


def endpoints(server: FleetServer) -> list[Endpoint]:
    parts = {pod: address.rsplit(":", 1) for pod, address in server.addresses.items()}
    return [Endpoint(pod, f"uid of {pod}", host, int(port)) for pod, (host, port) in parts.items()]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.HUNG, "timed out after 2."),
        (Fault.SLOW, "timed out after 2."),
        (Fault.UNAVAILABLE, 'HTTP 503: {"error": "the model is not available"}'),
        (Fault.RESET, "connection reset by peer"),
        (Fault.GARBAGE, "answered with a page of another kind: "),
        (Fault.EMPTY, "answered with a page of another kind: "),
        (Fault.ENDLESS, "the page is larger than 4 MiB"),
    ],
)
async def test_a_pod_that_cannot_be_read_is_unknown_and_the_others_are_read(
    server: FleetServer, fault: Fault, reason: str
) -> None:
    source = PodSource(max_page_bytes=4 * 2**20)
    server.faults["pod-2"] = fault

    said = await source.sample(endpoints(server), ReadOptions(), 2.0)

    await source.close()
    assert isinstance(said["pod-2"], Unknown)
    assert said["pod-2"].reason.startswith(reason)
    assert [pod for pod, outcome in said.items() if isinstance(outcome, Sample)] == ["pod-0", "pod-1", "pod-3", "pod-4"]


@pytest.mark.parametrize("fault", [Fault.NAN, Fault.NEGATIVE, Fault.HUGE])
async def test_what_a_pod_lies_about_is_unknown_and_the_rest_of_its_page_is_read(
    server: FleetServer, fault: Fault
) -> None:
    source = PodSource()
    server.faults["pod-2"] = fault

    liar = (await source.sample(endpoints(server), ReadOptions(), 30.0))["pod-2"]

    await source.close()
    assert isinstance(liar, Sample)
    assert (liar.waiting, liar.running) == (None, None)
    assert {"waiting", "running"} <= liar.unknown.keys()
    assert liar.counters["generation_tokens"] > 0


async def test_a_page_of_22_mb_says_the_same_as_the_small_one(server: FleetServer) -> None:
    source = PodSource()
    before = await source.sample(endpoints(server), ReadOptions(), 30.0)
    await source.close()
    source = PodSource()
    server.faults["pod-2"] = Fault.OVERSIZED

    after = await source.sample(endpoints(server), ReadOptions(), 30.0)

    await source.close()
    assert after == before


async def test_full_and_filtered_pages_say_the_same(server: FleetServer) -> None:
    source = PodSource()

    full = await source.sample(endpoints(server), ReadOptions(), 30.0)
    filtered = await source.sample(endpoints(server), ReadOptions(), 30.0)

    await source.close()
    assert filtered == full
    assert all(sample.histograms for sample in filtered.values())


async def test_pods_with_several_api_servers_are_read_in_full() -> None:
    fleet = Fleet(arrivals(constant(20.0), NOW, seed=1))
    fleet.add(0.0)
    async with FleetServer(fleet, lambda: NOW, multi_process=True) as server:
        source = PodSource()
        said = [(await source.sample(endpoints(server), ReadOptions(), 30.0))["pod-0"] for _ in range(3)]
        await source.close()

    assert said == [said[0]] * 3
    assert said[0].running > 0


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.SLOW])
async def test_a_pod_that_recovers_is_read_again(server: FleetServer, fault: Fault) -> None:
    source = PodSource(patience_s=0.2, max_page_bytes=4 * 2**20)
    server.faults["pod-2"] = fault
    for _ in range(3):
        await source.sample(endpoints(server), ReadOptions(), 0.1)
    del server.faults["pod-2"]

    async def all_well() -> bool:
        said = await source.sample(endpoints(server), ReadOptions(), 2.0)
        return all(isinstance(outcome, Sample) and outcome.waiting is not None for outcome in said.values())

    await until(all_well)
    await source.close()
