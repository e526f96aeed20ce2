"""Samples out of a Prometheus: a small one here, which answers the very query that is sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from aiohttp import web

from scaler.exposition.sample import Sample
from scaler.sources.access import Access
from scaler.sources.pods import PodSource
from scaler.sources.prometheus import PrometheusSource
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from tests.fleet.web import SOON, PodServer

PROD = ReadOptions(namespace="prod")
SELECTOR = re.compile(r"last_over_time\(\{(.*?)\}\[(\d+)s\]\)")
MATCHER = re.compile(r'(\w+)(=~|=)"((?:[^"\\]|\\.)*)"')
LINE = re.compile(r"^([\w:]+)\{(.*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

VLLM = """\
vllm:num_requests_running{engine="0",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:generation_tokens_total{engine="0",model_name="m"} 900.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 3.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 5.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 5.0
unrelated_total{engine="0"} 1.0
"""


class Prometheus:
    """Keeps series with the age of their last sample, and evaluates selectors."""

    def __init__(self) -> None:
        self.series: list[tuple[dict[str, str], str, float]] = []
        self.server = PodServer(self._answer)
        self.sent: list[Mapping[str, str]] = []
        self.source: PrometheusSource

    def scraped(self, page: str = VLLM, *, age_s: float = 5.0, **labels: str) -> None:
        """Take in a page as a scrape with these labels does."""
        added = {"namespace": "prod", "pod": "chat-0", "job": "vllm", "instance": "10.0.0.1:8000"} | labels
        for name, own, value in LINE.findall(page):
            self.series.append(({"__name__": name, **dict(LABEL.findall(own)), **added}, value, age_s))

    async def sample(self, *pods: str, deadline_s: float = SOON) -> Mapping[str, Sample | Unknown]:
        endpoints = [Endpoint(pod, "", "", 0) for pod in pods]
        return await self.source.sample(endpoints, PROD, deadline_s)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        form = await request.post()
        self.sent.append({str(name): str(value) for name, value in form.items()})
        selectors = SELECTOR.findall(str(form["query"]))
        assert " or ".join(f"last_over_time({{{inner}}}[{s}s])" for inner, s in selectors) == form["query"]
        found = [
            {"metric": labels, "value": [1_790_000_000.0, value]}
            for labels, value, age_s in self.series
            if any(age_s <= float(seconds) and _matches(labels, inner) for inner, seconds in selectors)
        ]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": found}})


def _matches(labels: Mapping[str, str], inner: str) -> bool:
    for name, operator, quoted in MATCHER.findall(inner):
        wanted, found = quoted.replace('\\"', '"').replace("\\\\", "\\"), labels.get(name, "")
        if not (re.fullmatch(wanted, found) if operator == "=~" else wanted == found):
            return False
    return True


@pytest.fixture
async def prometheus() -> AsyncIterator[Prometheus]:
    world = Prometheus()
    async with world.server as server:
        world.source = PrometheusSource(f"http://127.0.0.1:{server.port}/")
        yield world
        await world.source.close()


async def test_a_pod_reads_the_same_as_from_its_own_page(prometheus: Prometheus) -> None:
    prometheus.scraped()

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=VLLM)

    async with PodServer(page) as pod:
        direct = PodSource()
        expected = await direct.sample([pod.endpoint("chat-0")], PROD, SOON)
        await direct.close()

    assert await prometheus.sample("chat-0") == expected
    assert expected["chat-0"].waiting == 7.0


async def test_one_query_reads_all_pods_of_a_target(prometheus: Prometheus) -> None:
    pods = [f"chat-{i}" for i in range(20)]
    for pod in pods:
        prometheus.scraped(pod=pod)

    said = await prometheus.sample(*pods)

    assert {pod: sample.waiting for pod, sample in said.items()} == dict.fromkeys(pods, 7.0)
    assert prometheus.server.paths == ["/api/v1/query"]
    assert "unrelated" not in prometheus.sent[0]["query"]


async def test_pods_of_others_are_left_out(prometheus: Prometheus) -> None:
    prometheus.scraped()
    prometheus.scraped(VLLM.replace(" 7.0", " 70.0"), namespace="lab")
    prometheus.scraped(VLLM.replace(" 7.0", " 700.0"), pod="chat-00")
    prometheus.scraped(VLLM.replace(" 7.0", " 7000.0"), pod="chatx0")

    assert (await prometheus.sample("chat-0"))["chat-0"].waiting == 7.0


async def test_a_name_is_taken_literally(prometheus: Prometheus) -> None:
    prometheus.scraped(pod="v1x2")

    assert isinstance((await prometheus.sample("v1.2"))["v1.2"], Unknown)
    assert isinstance((await prometheus.sample('a"b\\c|v1x2'))['a"b\\c|v1x2'], Unknown)


async def test_a_pod_without_recent_samples_is_unknown(prometheus: Prometheus) -> None:
    prometheus.scraped(age_s=61.0)
    prometheus.scraped(pod="chat-1", age_s=59.0)

    said = await prometheus.sample("chat-0", "chat-1")

    assert "has no series of this pod from the last 60 s: is it scraped?" in said["chat-0"].reason
    assert said["chat-1"].waiting == 7.0


async def test_a_page_scraped_by_two_jobs_counts_once(prometheus: Prometheus) -> None:
    prometheus.scraped(job="podmonitor", endpoint="http")
    prometheus.scraped(job="servicemonitor", service="chat", container="vllm")
    prometheus.scraped(job="podmonitor", endpoint="http", prometheus_replica="prometheus-1")

    assert (await prometheus.sample("chat-0"))["chat-0"].waiting == 7.0


async def test_several_ports_of_one_pod_are_added(prometheus: Prometheus) -> None:
    prometheus.scraped(instance="10.0.0.1:8000")
    prometheus.scraped(VLLM.replace('engine="0"', 'engine="1"'), instance="10.0.0.1:8001")

    sample = (await prometheus.sample("chat-0"))["chat-0"]

    assert sample.waiting == 14.0
    assert set(sample.engines) == {"0", "1"}


async def test_an_exported_pod_is_the_pod_that_is_meant(prometheus: Prometheus) -> None:
    prometheus.scraped(namespace="monitoring", pod="gateway-0", exported_namespace="prod", exported_pod="chat-0")

    assert (await prometheus.sample("chat-0"))["chat-0"].waiting == 7.0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (web.json_response({"status": "error", "error": "query timed out"}, status=503), "HTTP 503: query timed out"),
        (web.Response(status=401, text="Unauthorized"), "HTTP 401, no answer of a Prometheus API: Unauthorized"),
        (web.Response(text="<html>"), "HTTP 200, no answer of a Prometheus API: <html>"),
        (web.json_response({"status": "success", "data": {}}), "HTTP 200, no answer of a Prometheus API: "),
        (
            web.json_response({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}}),
            "HTTP 200, no answer of a Prometheus API: ",
        ),
    ],
)
async def test_a_query_that_fails_makes_all_pods_unknown(
    prometheus: Prometheus, answer: web.Response, reason: str
) -> None:
    async def fails(request: web.BaseRequest) -> web.StreamResponse:
        return answer

    prometheus.server.answer = fails

    said = await prometheus.sample("chat-0", "chat-1")

    assert set(said) == {"chat-0", "chat-1"}
    assert all(f"http://127.0.0.1:{prometheus.server.port}: {reason}" in each.reason for each in said.values())


async def test_a_server_that_hangs_makes_all_pods_unknown_in_time(prometheus: Prometheus) -> None:
    async def hangs(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("never reached")

    prometheus.server.answer = hangs

    assert "timed out after 0.1 s" in (await prometheus.sample("chat-0", deadline_s=0.1))["chat-0"].reason


async def test_a_server_that_is_gone_makes_all_pods_unknown() -> None:
    async with PodServer() as gone:
        source = PrometheusSource(f"http://127.0.0.1:{gone.port}")

    said = await source.sample([Endpoint("chat-0", "", "", 0)], PROD, SOON)

    await source.close()
    assert said["chat-0"].reason.endswith("connection refused")


async def test_no_pods_need_no_query(prometheus: Prometheus) -> None:
    assert await prometheus.sample() == {}
    assert prometheus.sent == []


async def test_the_operators_token_is_sent_and_followed(prometheus: Prometheus, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    source = PrometheusSource(f"http://127.0.0.1:{prometheus.server.port}", Access(bearer_token_file=token))
    for secret in ("first", "second, longer"):
        token.write_text(secret)
        await source.sample([Endpoint("chat-0", "", "", 0)], PROD, SOON)

    await source.close()
    sent = [request.headers["Authorization"] for request in prometheus.server.asked]
    assert sent == ["Bearer first", "Bearer second, longer"]
