"""A small world for the protocol: one fleet told in words, a real server on loopback, and a client like KEDA."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import grpc

from scaler.cluster.model import DiscoveryError, Phase, Pod, Workload
from scaler.exposition.sample import Histogram, Sample
from scaler.serving.address import Address
from scaler.serving.host import Host, Ports
from scaler.serving.protocol import externalscaler_pb2 as pb
from scaler.serving.protocol.externalscaler_pb2_grpc import ExternalScalerStub
from scaler.serving.tls import TlsFiles
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from scaler.targets import Targets, World

NAMESPACE, NAME = "serving", "llama"
POLICY = {
    "targetOngoingRequests": "10",
    "metricsInterval": "0.1s",
    "smoothingFactor": "1",
    "upscaleDelay": "0",
    "downscaleDelay": "0",
    "downscaleLimit": "100/1s",
    "startingCredit": "false",
}
"""Ten requests a replica and no delays, no limits: the count follows the queue from tick to tick."""

LOOPBACK = Address("127.0.0.1", 0)
PATIENCE_S = 20.0
"""How long a test waits for a condition before it fails; far more than it ever takes."""


@dataclass
class Fleet:
    """The pods of one model, as discovery and as source. A test changes it and the next tick sees that."""

    ready: int = 1
    starting: int = 0
    unschedulable: int = 0
    """Pods that have waited for a GPU since 1970."""
    minimum: int = 0
    maximum: int = 20
    waiting: float = 0.0
    running: float = 0.0
    ttft_s: float | None = None
    """How long the first token takes of the request that each reading of the first pod finds finished."""
    cold_start_s: float | None = None
    """How long the first pod took to start, on a new node; the last minute of it was its own."""
    silent: bool = False
    """No pod answers."""
    missing: str = ""
    """Why the workload cannot be told; empty when it can."""
    asked: int = field(default=0, init=False)

    def workload(self, namespace: str, name: str) -> Workload:
        """The same fleet for every name."""
        if self.missing:
            raise DiscoveryError(self.missing)
        now = time.time()
        phases = [Phase.READY] * self.ready + [Phase.STARTING] * self.starting
        pods = [
            Pod(f"{name}-{i}", f"{namespace}-{name}-{i}", phase, since=now - 30, created=now - 60, ip="127.0.0.1")
            for i, phase in enumerate(phases)
        ]
        for i in range(self.unschedulable):
            why = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
            pods.append(Pod(f"u-{i}", f"u-{i}", Phase.UNSCHEDULABLE, since=0.0, created=0.0, reason=why))
        if self.cold_start_s is not None:
            asked = now - self.cold_start_s
            pods[0] = replace(pods[0], created=asked, scheduled_at=now - 60, running_at=now - 50, ready_at=now)
        count = len(pods)
        return Workload(count, count, tuple(pods), self.minimum, self.maximum, seen_at=now)

    async def sample(
        self, endpoints: Sequence[Endpoint], options: ReadOptions, deadline_s: float
    ) -> Mapping[str, Sample | Unknown]:
        """All waiting requests stand before the first pod, all running ones are in it."""
        self.asked += 1
        if self.silent:
            return {endpoint.pod: Unknown("connection refused") for endpoint in endpoints}
        busy = Sample(
            waiting=self.waiting,
            running=self.running,
            kv_cache_usage=0.25,
            engine="vllm",
            histograms=self._histograms(),
        )
        idle = Sample(waiting=0.0, running=0.0, kv_cache_usage=0.0, engine="vllm")
        return {endpoint.pod: idle if i else busy for i, endpoint in enumerate(endpoints)}

    def _histograms(self) -> Mapping[str, Histogram]:
        if self.ttft_s is None:
            return {}
        bounds = (0.5 * self.ttft_s, 1.01 * self.ttft_s, math.inf)
        return {"ttft": Histogram(bounds, (0, self.asked, self.asked), self.asked * self.ttft_s)}

    async def close(self) -> None:
        """Nothing is held."""


@asynccontextmanager
async def hosted(
    fleet: Fleet, *, targets: Targets | None = None, tls: TlsFiles | None = None, leading: bool = True
) -> AsyncIterator[Host]:
    """A scaler on free loopback ports that serves the fleet."""
    if targets is None:
        targets = Targets(World(fleet, fleet))
    async with Host(targets, Ports(LOOPBACK, LOOPBACK, tls)) as host:
        if leading:
            await host.lead()
        yield host


class Keda:
    """Asks as the KEDA operator does: the whole metadata in every call, no deadline of its own."""

    def __init__(self, channel: grpc.aio.Channel, metadata: Mapping[str, str] = POLICY) -> None:
        self.stub = ExternalScalerStub(channel)
        keda_keys = {"scalerAddress": "vllm-scaler.keda:9090"}
        self.ref = pb.ScaledObjectRef(namespace=NAMESPACE, name=NAME, scalerMetadata={**metadata, **keda_keys})

    async def spec(self) -> pb.MetricSpec:
        """The one metric spec. Raises grpc.aio.AioRpcError."""
        (spec,) = (await self.stub.GetMetricSpec(self.ref)).metricSpecs
        return spec

    async def metric(self) -> pb.MetricValue:
        """The one metric value. Raises grpc.aio.AioRpcError."""
        name = (await self.spec()).metricName
        request = pb.GetMetricsRequest(scaledObjectRef=self.ref, metricName=name)
        (value,) = (await self.stub.GetMetrics(request)).metricValues
        return value

    async def value(self) -> float:
        """What KEDA hands to the HPA: the float, unless it is not above zero; then the integer."""
        value = await self.metric()
        return value.metricValueFloat if value.metricValueFloat > 0 else float(value.metricValue)

    async def active(self) -> bool:
        """What IsActive says. Raises grpc.aio.AioRpcError."""
        return (await self.stub.IsActive(self.ref)).result

    async def refusal(self, call: Callable[[Keda], object]) -> tuple[grpc.StatusCode, str]:
        """The status code and text with which a call fails."""
        try:
            await call(self)  # type: ignore[misc]
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or ""
        raise AssertionError("the call succeeded")


async def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait until a condition holds; it may be a coroutine function, and one that fails by RPC does not hold."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            held = condition()
            if asyncio.iscoroutine(held):
                held = await held
        except grpc.aio.AioRpcError:
            held = False
        if held:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{what} did not come true within {PATIENCE_S:g} s")
