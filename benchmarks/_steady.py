"""A scaler in a process of its own whose targets tick on steady load; what the benchmarks of the server share.

Samples come from memory, made after a recorded page, so that only the scaler's own work is measured; reading pages
is measured elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import structlog
import uvloop

from benchmarks._processes import beside
from scaler.cluster.model import Phase, Pod, Workload
from scaler.exposition import read_page
from scaler.exposition.sample import Histogram, Sample
from scaler.serving.address import Address
from scaler.serving.host import Host, Ports, calm_collector
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from scaler.targets import Outcomes, Record, Target, Targets, World

NAMESPACE = "bench"
TARGETS = 1000
PODS = 8
PAGE = Path(__file__).parent.parent / "tests/data/metrics/vllm-metrics-loaded.txt"


class SteadyFleet:
    """The same busy pods for every target, as discovery and as source."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._recorded = read_page(PAGE.read_bytes())
        self._pods = tuple(
            Pod(f"pod-{i}", f"uid-{i}", Phase.READY, since=0.0, created=0.0, ready_at=60.0, ip="127.0.0.1")
            for i in range(PODS)
        )

    def workload(self, namespace: str, name: str) -> Workload:  # noqa: ARG002
        return Workload(PODS, PODS, self._pods, 1, 64, seen_at=time.time())

    async def sample(
        self,
        endpoints: Sequence[Endpoint],
        options: ReadOptions,  # noqa: ARG002
        deadline_s: float,  # noqa: ARG002
    ) -> Mapping[str, Sample | Unknown]:
        age = time.monotonic() - self._began
        return {endpoint.pod: self._sample(age) for endpoint in endpoints}

    async def close(self) -> None: ...

    def _sample(self, age: float) -> Sample:
        """The recorded page as it would read now: other queues, and counters that went on."""
        recorded = self._recorded
        return replace(
            recorded,
            waiting=float(random.randrange(20)),
            running=float(random.randrange(10, 60)),
            counters={name: value + age * 100 for name, value in recorded.counters.items()},
            histograms={
                name: Histogram(h.bounds, tuple(count * (1 + age) for count in h.counts), h.sum * (1 + age))
                for name, h in recorded.histograms.items()
            },
        )


@contextmanager
def server(targets: int, warm_up_s: float, *, ages: bool = False) -> Iterator[tuple[str, int]]:
    """A scaler that has run so long with so many targets: its gRPC address and its process id.

    One that `ages` remembers each tick seven times, at moments of the hour before it.
    """
    with beside(_serve, targets, warm_up_s, ages) as served:
        yield served


def _remember_again(target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:  # noqa: ARG001
    for minutes in range(60, 0, -10):
        target.history.add(replace(record, time=record.time - minutes * 60))


def _serve(targets: int, warm_up_s: float, ages: bool, connection: Connection) -> None:
    async def serve() -> None:
        fleet = SteadyFleet()
        loopback = Address("127.0.0.1", 0)
        served = Targets(World(fleet, fleet, observers=[_remember_again] if ages else []))
        async with Host(served, Ports(loopback, loopback)) as host:
            for i in range(targets):
                served.find(NAMESPACE, f"model-{i}", {})
            await host.lead()
            await asyncio.sleep(warm_up_s)
            connection.send(str(host.grpc_address))
            await asyncio.to_thread(connection.recv)

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    calm_collector()
    uvloop.run(serve())
