"""What the reader understands of a real engine's page is what the engine says there, and what its clients saw."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from scaler.exposition import read_page, wanted_names
from scaler.exposition.sample import Sample
from scaler.sources.pods import PodSource
from scaler.sources.source import Endpoint, ReadOptions
from tests.real_engine import load
from tests.real_engine.engine import SLOTS, RealEngine
from tests.real_engine.record_pages import REQUESTS, TOKENS, Pages
from tests.real_engine.reference import Reference

pytestmark = pytest.mark.real_engine

GAUGES = {
    "waiting": "vllm:num_requests_waiting",
    "running": "vllm:num_requests_running",
    "kv_cache_usage": "vllm:kv_cache_usage_perc",
}
COUNTERS = {
    "prompt_tokens": "vllm:prompt_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "requests_finished": "vllm:request_success_total",
    "preemptions": "vllm:num_preemptions_total",
    "prefix_cache_queries": "vllm:prefix_cache_queries_total",
    "prefix_cache_hits": "vllm:prefix_cache_hits_total",
}
HISTOGRAMS = {
    "ttft": "vllm:time_to_first_token_seconds",
    "itl": "vllm:inter_token_latency_seconds",
    "e2e": "vllm:e2e_request_latency_seconds",
    "queue_time": "vllm:request_queue_time_seconds",
}
COMMITTED = Path(__file__).parents[1] / "data" / "metrics"


def test_every_page_is_read_as_the_engine_means_it(pages: Pages) -> None:
    for page in pages.every():
        sample, reference = read_page(page), Reference(page)
        assert sample.engine == "vllm"
        assert not sample.unknown
        for name, series in GAUGES.items():
            assert getattr(sample, name) == reference.value(series), name
        for name, series in COUNTERS.items():
            assert sample.counters[name] == reference.value(series), name
        for name, family in HISTOGRAMS.items():
            assert sample.histograms[name].sum == reference.value(f"{family}_sum"), name
            assert sample.histograms[name].counts[-1] == reference.value(f"{family}_count"), name


@pytest.mark.parametrize("moment", ["fresh", "drained"])
def test_an_idle_engine_is_known_to_be_idle(pages: Pages, moment: str) -> None:
    sample = read_page(getattr(pages, moment))
    assert (sample.waiting, sample.running, sample.kv_cache_usage) == (0, 0, 0)


def test_the_queue_is_seen_to_fall_in_steps_while_few_run_at_a_time(pages: Pages) -> None:
    samples = [read_page(page) for page in (*pages.loaded, pages.drained)]
    waiting = [sample.waiting for sample in samples if sample.waiting is not None]
    longest = waiting.index(max(waiting))
    assert REQUESTS / 2 <= waiting[longest] <= REQUESTS - SLOTS
    assert all(earlier >= later for earlier, later in itertools.pairwise(waiting[longest:]))
    assert len(set(waiting[longest:])) >= 5
    assert max(sample.running for sample in samples if sample.running is not None) == SLOTS


def test_counters_grow_by_what_the_clients_were_given(pages: Pages) -> None:
    before, after, answers = read_page(pages.fresh), read_page(pages.drained), pages.answers
    assert (answers.requests, answers.generated_tokens) == (REQUESTS, REQUESTS * TOKENS)
    grown = {name: after.counters[name] - before.counters[name] for name in COUNTERS}
    assert grown["requests_finished"] == answers.requests
    assert grown["prompt_tokens"] == answers.prompt_tokens
    assert grown["generation_tokens"] == answers.generated_tokens
    for name in ("ttft", "e2e", "queue_time"):
        assert after.histograms[name].counts[-1] == answers.requests, name


def test_the_filtered_page_is_small_and_says_the_same(engine: RealEngine) -> None:
    full = engine.page()
    filtered = engine.page(f"/metrics/?{urlencode([('name[]', name) for name in wanted_names('vllm')])}")
    assert len(filtered) < len(full) / 2
    assert read_page(filtered) == read_page(full)


async def test_a_pod_is_read_by_its_filtered_page_once_that_has_proven_itself(engine: RealEngine) -> None:
    expected = read_page(engine.page())
    assert await _read_as_a_pod(engine, times=3) == [expected] * 3
    assert "GET /metrics/?name" in engine.log_tail().splitlines()[-1]


def test_the_read_command_tells_what_the_engine_says(engine: RealEngine) -> None:
    command = [sys.executable, "-c", "from scaler.cli import main; main()", "read", f"{engine.url}/metrics", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told, reference = json.loads(done.stdout), Reference(engine.page())
    assert told["engine"] == "vllm"
    assert told["unknown"] == {}
    for name, series in GAUGES.items():
        assert told[name] == told["engines"]["0"][name] == reference.value(series), name
    for name, series in COUNTERS.items():
        assert told["counters"][name] == reference.value(series), name


@pytest.mark.parametrize(
    ("moment", "file"), [("fresh", "vllm-metrics-fresh.txt"), ("drained", "vllm-metrics-loaded.txt")]
)
def test_recorded_pages_show_the_families_that_the_engine_shows_today(pages: Pages, moment: str, file: str) -> None:
    today, then = Reference(getattr(pages, moment)), Reference((COMMITTED / file).read_bytes())
    assert today.families() == then.families()


async def test_several_api_servers_are_read_by_the_full_page_and_without_samples_are_idle() -> None:
    with RealEngine("--api-server-count", "2") as engine:
        page = engine.page()
        assert b"# TYPE vllm:num_requests_waiting gauge" in page
        with pytest.raises(KeyError):
            Reference(page).value("vllm:num_requests_waiting")
        for sample in (read_page(page), *await _read_as_a_pod(engine, times=3)):
            assert (sample.waiting, sample.running, sample.kv_cache_usage) == (0, 0, 0)

        answers = await load.send(engine.url, requests=8, tokens=20)
        *_, sample = await _read_as_a_pod(engine, times=3)
        assert sample.counters["generation_tokens"] == answers.generated_tokens
        assert "GET /metrics HTTP" in engine.log_tail().splitlines()[-1]


async def _read_as_a_pod(engine: RealEngine, *, times: int) -> list[Sample]:
    """What the scaler reads, so many times one after the other."""
    host, port = engine.address.split(":")
    pod = Endpoint("vllm-0", "uid", host, int(port))
    source = PodSource()
    try:
        said = [(await source.sample([pod], ReadOptions(), deadline_s=30))[pod.pod] for _ in range(times)]
    finally:
        await source.close()
    samples = [outcome for outcome in said if isinstance(outcome, Sample)]
    assert len(samples) == times, said
    return samples
