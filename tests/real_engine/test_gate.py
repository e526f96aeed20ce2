"""The gate before a real vLLM: as its middleware in a plain pod, and before AsyncLLM in the process of a replica."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from scaler.exposition import ENGINES
from tests.real_engine import installation, tiny_model
from tests.real_engine.engine import MODEL, SLOTS, RealEngine
from tests.waiting import until

pytestmark = pytest.mark.real_engine

ROOT = Path(__file__).parents[2]


class InProcess(RealEngine):
    """AsyncLLM behind the gate, as a replica of Ray Serve has it."""

    def command(self, model: Path) -> Sequence[str]:
        options = {
            "model": str(model),
            "served-model-name": [MODEL],
            "load-format": "dummy",
            "max-model-len": tiny_model.CONTEXT,
            "max-num-seqs": SLOTS,
            "enforce-eager": True,
            "gpu-memory-utilization": 0.3,
            "chat-template": "{{ messages[0].content }}",
        }
        script = str(Path(__file__).with_name("in_process.py"))
        return (str(installation.vllm().with_name("python")), script, *self.address.split(":"), json.dumps(options))


def question(tokens: int, answers: int = 1) -> dict[str, object]:
    counted = {"stream": True, "stream_options": {"include_usage": True}}
    return {"model": MODEL, "prompt": "Go on.", "max_tokens": tokens, "n": answers, "ignore_eos": True, **counted}


async def ask(client: httpx.AsyncClient, tokens: int, answers: int = 1) -> tuple[int, int]:
    """Status, and how many tokens came."""
    async with client.stream("POST", "/v1/completions", json=question(tokens, answers)) as answer:
        events = [line.removeprefix("data: ") async for line in answer.aiter_lines() if line.startswith("data: {")]
    return answer.status_code, json.loads(events[-1])["usage"]["completion_tokens"] if events else 0


async def test_as_middleware_of_vllm_it_admits_and_drains() -> None:
    settings = json.dumps({"maxNumSeqs": 1, "ttftSlo": "300ms", "drainGrace": "0"})
    middleware = ("--middleware", "inference.gate.Gate")
    with RealEngine(*middleware, PYTHONPATH=str(ROOT), INFERENCE_GATE=settings) as engine:
        page = ENGINES["vllm"].read(engine.page())
        assert page.counters["generation_tokens"] >= 1  # before anybody asked, it had made its first token
        async with httpx.AsyncClient(base_url=engine.url, timeout=300, trust_env=False) as client:
            busy = asyncio.create_task(ask(client, 400, answers=32))
            await until(lambda: ENGINES["vllm"].read(engine.page()).running, "a busy engine", timeout_s=120)
            refused = await client.post("/v1/completions", json=question(1))
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            port = engine.address.partition(":")[2]
            command = (sys.executable, "-m", "inference.drain", "--port", port)
            hook = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
            await until(lambda: hook.returncode is not None or not _is_ready(engine), "the drain")
            assert (await ask(client, 1))[0] == 503
            assert await busy == (200, 32 * 400)
            assert await hook.wait() == 0


async def test_in_the_process_of_a_replica_it_has_all_of_vllms_api_and_tells_its_load() -> None:
    with InProcess(PYTHONPATH=str(ROOT)) as engine:
        async with httpx.AsyncClient(base_url=engine.url, timeout=300, trust_env=False) as client:
            assert (await client.get("/v1/models")).json()["data"][0]["id"] == MODEL
            chat = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
            answer = await client.post("/v1/chat/completions", json=chat)
            assert answer.json()["usage"]["completion_tokens"] == 3, answer.text
            busy = [asyncio.create_task(ask(client, 300)) for _ in range(2)]

            def told() -> dict[str, float]:
                found: dict[str, float] = json.loads(engine.page("/told"))
                return found

            await until(lambda: told()["running"] == 2, "two that run", timeout_s=120)
            assert told()["kv_cache_usage"] > 0
            assert ENGINES["vllm"].read(engine.page()).running == 2
            assert await asyncio.gather(*busy) == [(200, 300)] * 2


def _is_ready(engine: RealEngine) -> bool:
    try:
        engine.page("/health")
    except OSError:
        return False
    return True
