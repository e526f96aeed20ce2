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

from scaler.exposition import ENGINES
from scaler.exposition.sample import Sample
from scaler.policy import Decision, State, decide
from scaler.targets.load import LoadMeter
from tests.cluster.local_ray import LocalRay
from tests.unit.policy.world import see, settings
from tests.waiting import until

pytestmark = pytest.mark.toolchain

NAME, DEPLOYMENT = "llm", "Engine"
KEYS = {
    "targetOngoingRequests": 6,
    "lookAhead": 0,
    "upscaleDelay": "1s",
    "downscaleDelay": "2s",
    "metricsInterval": "200ms",
    "lookBackPeriod": "2s",
}


@pytest.fixture(scope="module")
def nodes() -> Iterator[LocalRay]:
    """A head and a worker, with room for three replicas together."""
    with LocalRay(1, 2) as running:
        yield running


@pytest.fixture
def ray(nodes: LocalRay) -> LocalRay:
    """The nodes, without an application."""
    nodes.serve.deploy()
    nodes.wait_for("no application", lambda: not nodes.serve.application(NAME))
    return nodes


def application(**deployment: Any) -> dict[str, Any]:
    return {
        "name": NAME,
        "import_path": "engine:app",
        "deployments": [{"name": DEPLOYMENT, "graceful_shutdown_timeout_s": 120, **deployment}],
    }


def scaled_by(policy: str, **kwargs: Any) -> dict[str, Any]:
    return {
        "min_replicas": 1,
        "max_replicas": 3,
        "upscale_delay_s": 0,
        "downscale_delay_s": 0,
        "look_back_period_s": 1,
        "metrics_interval_s": 0.2,
        "policy": {"policy_function": policy, "policy_kwargs": kwargs},
    }


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
    policy = scaled_by("recorded:Recorded", tape=str(tape), **KEYS)
    ray.serve.deploy(application(max_ongoing_requests=2, autoscaling_config=policy))
    await asyncio.to_thread(ray.wait_for, "a replica", lambda: only(ray, 1))

    async with httpx.AsyncClient(base_url=ray.serve.url, timeout=600.0, trust_env=False) as client:
        many = send(client, 13, marks, first)
        await asyncio.to_thread(ray.wait_for, "three replicas", lambda: only(ray, 3))
        few = send(client, 5, marks, second)  # one replica would do, but they are on all three: each takes two
        first.touch()
        await until(lambda: len(list(marks.iterdir())) == 18, "all at work", timeout_s=120)
        began = time.monotonic()
        await asyncio.to_thread(ray.wait_for, "two that stop", lambda: len(replicas(ray, "STOPPING")) == 2)
        stopping = replicas(ray, "STOPPING")
        await until(lambda: time.monotonic() - began > 10, "10 s")
        second.touch()
        answers = await asyncio.gather(*many, *few)
    assert [answer.status_code for answer in answers] == [200] * 18
    assert stopping < {answer.json()["replica"] for answer in answers[13:]}
    await asyncio.to_thread(ray.wait_for, "one replica", lambda: only(ray, 1))
    counts = same_decisions(tape)
    assert (counts[0], max(counts), counts[-1]) == (1, 3, 1)


def send(client: httpx.AsyncClient, count: int, marks: Path, end: Path) -> list[asyncio.Task[httpx.Response]]:
    """So many requests on their way, which leave a mark where they are at work and stay there until `end` exists."""
    query = {"mark": str(marks), "until": str(end)}
    return [asyncio.create_task(client.get("/", params=query)) for _ in range(count)]


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


@pytest.mark.timeout(1200)
async def test_the_queue_on_the_page_of_one_node_is_the_queue_of_all(ray: LocalRay, tmp_path: Path) -> None:
    """The head routes, and both nodes have replicas: the worker's page has no queue on it."""
    marks, end = tmp_path / "marks", tmp_path / "end"
    marks.mkdir()
    ray.serve.deploy(application(num_replicas=3, max_ongoing_requests=2))
    await asyncio.to_thread(ray.wait_for, "three replicas", lambda: only(ray, 3))

    def load() -> tuple[float | None, float | None]:
        seen = LoadMeter(30).measure(0.0, {each: page(each) for each in ray.metrics})
        return seen.waiting, seen.running

    async with httpx.AsyncClient(base_url=ray.serve.url, timeout=600.0, trust_env=False) as client:
        requests = send(client, 9, marks, end)
        await asyncio.to_thread(ray.wait_for, "three that wait and six that run", lambda: load() == (3, 6))
        assert page(ray.metrics[1]).waiting is None
        end.touch()
        assert [answer.status_code for answer in await asyncio.gather(*requests)] == [200] * 9
    await asyncio.to_thread(ray.wait_for, "an idle application", lambda: load() == (0, 0))


def page(address: str) -> Sample:
    """What a node's metrics page says."""
    answer = httpx.get(f"http://{address}/metrics", trust_env=False, timeout=60.0)
    return ENGINES["ray"].read(answer.raise_for_status().content)


@pytest.mark.timeout(1200)
async def test_the_application_serves_what_openai_clients_ask_and_tells_the_policy_its_load(
    ray: LocalRay, tmp_path: Path
) -> None:
    tape = tmp_path / "tape"
    ray.serve.deploy(
        {
            "name": NAME,
            "import_path": "inference.application:build",
            "args": {"engine": "simulated", "gate": {"maxNumSeqs": 8, "ttftSlo": "1m"}, "options": {"start_up_s": 1}},
            "deployments": [
                {"name": DEPLOYMENT, "autoscaling_config": scaled_by("recorded:Recorded", tape=str(tape), **KEYS)}
            ],
        }
    )
    await asyncio.to_thread(ray.wait_for, "a replica", lambda: only(ray, 1))
    async with httpx.AsyncClient(base_url=ray.serve.url, timeout=600.0, trust_env=False) as client:
        assert (await client.get("/health")).status_code == 200
        model = (await client.get("/v1/models")).json()["data"][0]["id"]
        question = {"model": model, "messages": [{"role": "user", "content": "Say it."}], "max_tokens": 3}
        answer = await client.post("/v1/chat/completions", json=question)
        assert answer.json()["usage"]["completion_tokens"] == 3
        requests = [client.post("/v1/chat/completions", json={**question, "max_tokens": 600}) for _ in range(9)]
        answers = await asyncio.gather(*requests)
    assert [answer.status_code for answer in answers] == [200] * 9
    seen = [json.loads(line) for line in tape.read_text().splitlines()]
    assert any((moment["waiting"], moment["running"]) == (1, 8) for moment in seen)  # one waits at the gate
    assert max(moment["desired"] for moment in seen) == 2  # of 9 requests, 6 a replica


def test_wrong_arguments_of_the_application_are_told(ray: LocalRay) -> None:
    wrong = {"engine": "simulated", "gate": {"ttftSLO": "3s"}}
    ray.serve.deploy({"name": NAME, "import_path": "inference.application:build", "args": wrong})
    ray.wait_for("the failure", lambda: ray.serve.application(NAME).get("status") == "DEPLOY_FAILED")
    assert "ttftSLO: unknown key; did you mean ttftSlo?" in ray.serve.application(NAME)["message"]


def test_wrong_keys_stop_neither_serve_nor_the_deployment(ray: LocalRay) -> None:
    policy = scaled_by("inference.autoscaling:Policy", targetOngoingReqests=4)
    ray.serve.deploy(application(autoscaling_config=policy))
    ray.wait_for("what is wrong", lambda: "did you mean targetOngoingRequests?" in ray.controller_log())
    ray.wait_for("the application", lambda: ray.serve.application(NAME)["status"] == "RUNNING")
