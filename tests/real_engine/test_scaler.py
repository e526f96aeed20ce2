"""The scaler as a process before a real engine, asked by hand with grpcurl while requests come and go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from tests.protocol.grpcurl import Refused, grpcurl
from tests.protocol.process import served
from tests.real_engine.engine import SLOTS, RealEngine
from tests.real_engine.load import clients

pytestmark = [pytest.mark.real_engine, pytest.mark.toolchain]

SERVICE = "externalscaler.ExternalScaler"
NAME = {"namespace": "serving", "name": "tiny"}
CLIENTS = 64
TOKENS = 50
"""Short answers: the clients' last ones take seconds."""
POLICY = {
    "targetOngoingRequests": "16",
    "metricsInterval": "500ms",
    "downscaleDelay": "2s",
    "staleness": "10s",
    "minReplicas": "1",
    "maxReplicas": "9",
}
NEEDED = 4
"""Replicas, for 64 clients at 16 requests each."""
PATIENCE_S = 120.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody at a terminal. Every call raises Refused when it fails."""

    server: str
    endpoint: str

    async def count(self) -> float:
        """What GetMetrics gives to the HPA."""
        spec = (await self._ask("GetMetricSpec", self._ref))["metricSpecs"][0]
        request = {"scaledObjectRef": self._ref, "metricName": spec["metricName"]}
        value = (await self._ask("GetMetrics", request))["metricValues"][0]
        return float(value["metricValueFloat"])

    async def active(self) -> bool:
        """What IsActive says; proto3's JSON leaves false out."""
        return bool((await self._ask("IsActive", self._ref)).get("result", False))

    async def explanation(self) -> dict[str, Any]:
        """What Explain tells."""
        return dict(json.loads(await grpcurl(self.server, "vllmscaler.v1.Insight/Explain", data=NAME)))

    @property
    def _ref(self) -> dict[str, Any]:
        return {**NAME, "scalerMetadata": {**POLICY, "endpoints": self.endpoint}}

    async def _ask(self, call: str, message: dict[str, Any]) -> dict[str, Any]:
        return dict(json.loads(await grpcurl(self.server, f"{SERVICE}/{call}", data=message)))


@pytest.fixture
async def operator(engine: RealEngine) -> AsyncIterator[Operator]:
    async with served("--allow-endpoints", "127.0.0.0/8") as scaler:
        yield Operator(scaler.grpc, engine.address)


async def test_waiting_requests_become_a_higher_count_and_their_end_the_lower_one_again(
    operator: Operator, engine: RealEngine
) -> None:
    assert await operator.count() == 1
    assert not await operator.active()

    async with clients(engine.url, count=CLIENTS, tokens=TOKENS):
        await _until(operator.count, lambda count: count == NEEDED)
        assert await operator.active()
        told = await _until(operator.explanation, _shows_a_full_engine_and_a_queue)

    (pod,) = told["pods"]
    assert (pod["pod"], pod["phase"], pod["running"]) == (engine.address, "ready", SLOTS)
    assert pod["waiting"] == told["load"]["waiting"] <= CLIENTS - SLOTS
    assert f"{engine.address}: ready" in told["story"]
    assert f"{pod['waiting']:g} waiting, {SLOTS} running" in told["story"]
    assert told["replicas"]["desired"] == NEEDED
    assert f"KEDA is told {NEEDED}" in told["story"]

    await _until(operator.active, lambda active: not active)
    await _until(operator.count, lambda count: count == 1)
    told = await operator.explanation()
    assert (told["load"]["waiting"], told["load"]["running"]) == (0, 0)


async def test_a_killed_engine_never_lowers_the_count_and_then_there_is_no_answer(
    operator: Operator, engine: RealEngine
) -> None:
    async with clients(engine.url, count=CLIENTS, tokens=TOKENS):
        await _until(operator.count, lambda count: count == NEEDED)
        engine.kill()

    told = await _until(operator.explanation, lambda told: told["pods"][0].get("unknown"))
    assert told["load"]["unknown_pods"] == 1  # over reflection, names are as in the proto file
    assert "UNKNOWN" in told["story"]

    said = await _answers_until_refused(operator)
    assert set(said.counts) <= {NEEDED}
    assert "Code: Unavailable" in said.refusal
    assert told["pods"][0]["pod"] in said.refusal
    assert (await operator.explanation())["state"] == "STALE"


def _shows_a_full_engine_and_a_queue(told: dict[str, Any]) -> bool:
    """Between two batches nothing runs for a moment."""
    return bool(told["load"]["running"] == SLOTS and told["load"]["waiting"] > CLIENTS / 2)


@dataclass(frozen=True, slots=True)
class Said:
    counts: list[float]
    refusal: str


async def _answers_until_refused(operator: Operator) -> Said:
    counts: list[float] = []
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                counts.append(await operator.count())
            except Refused as refusal:
                return Said(counts, str(refusal))
            await asyncio.sleep(0.1)


async def _until(ask: Callable[[], Awaitable[T]], holds: Callable[[T], object]) -> T:
    """The first answer for which it holds."""
    answer: object = "none"
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if holds(answer := await ask()):
                    return answer
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"still after {PATIENCE_S:g} s: {answer}") from None
