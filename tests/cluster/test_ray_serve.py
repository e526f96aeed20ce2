"""The policy inside a real Ray Serve, without Kubernetes: it decides there what it decides everywhere."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scaler.policy import Decision, State, decide
from tests.cluster.local_ray import LocalRay
from tests.unit.policy.world import see, settings
from tests.waiting import until

pytestmark = pytest.mark.toolchain

NAME, DEPLOYMENT = "llm", "Engine"
KEYS = {
    "targetOngoingRequests": 4,
    "lookAhead": 0,
    "upscaleDelay": "1s",
    "downscaleDelay": "2s",
    "metricsInterval": "200ms",
    "lookBackPeriod": "2s",
}


@pytest.fixture(scope="module")
def ray() -> Iterator[LocalRay]:
    """A head and a worker, with room for three replicas together."""
    with LocalRay(1, 2) as nodes:
        yield nodes


def application(policy: str, **kwargs: Any) -> dict[str, Any]:
    autoscaling = {
        "min_replicas": 1,
        "max_replicas": 3,
        "upscale_delay_s": 0,
        "downscale_delay_s": 0,
        "look_back_period_s": 1,
        "metrics_interval_s": 0.2,
        "policy": {"policy_function": policy, "policy_kwargs": kwargs},
    }
    deployment = {
        "name": DEPLOYMENT,
        "max_ongoing_requests": 8,
        "graceful_shutdown_timeout_s": 120,
        "autoscaling_config": autoscaling,
    }
    return {"name": NAME, "import_path": "engine:app", "deployments": [deployment]}


def replicas(ray: LocalRay, state: str) -> set[str]:
    found = ray.serve.deployment(NAME, DEPLOYMENT).get("replicas", ())
    return {replica["replica_id"] for replica in found if replica["state"] == state}


def only(ray: LocalRay, count: int) -> bool:
    """So many replicas run, and none are on their way in or out."""
    states = [replica["state"] for replica in ray.serve.deployment(NAME, DEPLOYMENT).get("replicas", ())]
    return states == ["RUNNING"] * count


@pytest.mark.timeout(1200)
async def test_a_deployment_grows_and_shrinks_by_the_policy_and_a_request_of_10_s_survives_it(
    ray: LocalRay, tmp_path: Path
) -> None:
    marks, first, second, tape = (tmp_path / name for name in ("marks", "first", "second", "tape"))
    marks.mkdir()
    ray.serve.deploy(application("recorded:Recorded", tape=str(tape), **KEYS))
    await asyncio.to_thread(ray.wait_for, "a replica", lambda: only(ray, 1))

    async with httpx.AsyncClient(timeout=600.0, trust_env=False) as client:

        def send(count: int, end: Path) -> list[asyncio.Task[httpx.Response]]:
            query = {"mark": str(marks), "until": str(end)}
            return [asyncio.create_task(client.get(ray.serve.url, params=query)) for _ in range(count)]

        many = send(10, first)
        await asyncio.to_thread(ray.wait_for, "three replicas", lambda: only(ray, 3))
        few = send(3, second)
        began = time.monotonic()
        await until(lambda: len(list(marks.iterdir())) == 13, "thirteen requests at work", timeout_s=120)
        first.touch()
        await asyncio.to_thread(ray.wait_for, "replicas that stop", lambda: len(replicas(ray, "STOPPING")) == 2)
        stopping = replicas(ray, "STOPPING")
        await until(lambda: time.monotonic() - began > 10, "10 s")
        second.touch()
        answers = await asyncio.gather(*many, *few)
    assert [answer.status_code for answer in answers] == [200] * 13
    assert stopping & {answer.json()["replica"] for answer in answers[10:]}
    await asyncio.to_thread(ray.wait_for, "one replica", lambda: only(ray, 1))
    assert {1, 3} <= set(same_decisions(tape))


def same_decisions(tape: Path) -> list[int]:
    """Decide once more, outside Serve, what was decided inside it; returns the counts."""
    keys = settings(**KEYS)
    state: State | None = None
    decision: Decision | None = None
    counts = []
    for line in tape.read_text().splitlines():
        moment = json.loads(line)
        desired, at = moment.pop("desired"), moment.pop("time")
        starting = max(0, moment["requested"] - moment["ready"])
        state, decision = decide(keys, state, see(at, utc=at, starting=starting, **moment))
        assert decision.desired == desired, line
        counts.append(desired)
    return counts


def test_wrong_keys_stop_neither_serve_nor_the_deployment(ray: LocalRay) -> None:
    ray.serve.deploy(application("inference.autoscaling:Policy", targetOngoingReqests=4))
    ray.wait_for("a replica", lambda: only(ray, 1))
    assert "did you mean targetOngoingRequests?" in ray.controller_log()
