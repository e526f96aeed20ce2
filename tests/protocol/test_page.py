"""The live page's API: what the Insight service says, as JSON and as streams; and who may ask."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from scaler.cluster.model import ScaledObject, Trigger
from scaler.serving.host import Host, Ports
from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from scaler.targets import Target, Targets, World
from tests.protocol.world import LOOPBACK, NAME, NAMESPACE, PATIENCE_S, POLICY, Fleet, hosted, until

SLOW = {**POLICY, "metricsInterval": "60s", "lookBackPeriod": "120s"}
"""One decision for the whole test."""
TARGET = f"/api/v1/targets/{NAMESPACE}/{NAME}"


@pytest.fixture
def fleet() -> Fleet:
    return Fleet(ready=3, starting=1, waiting=30, running=12)


@pytest.fixture
def targets(fleet: Fleet) -> Targets:
    return Targets(World(fleet, fleet))


@pytest.fixture
async def host(fleet: Fleet, targets: Targets) -> AsyncIterator[Host]:
    async with hosted(fleet, targets=targets) as host:
        yield host


@pytest.fixture
async def web(host: Host) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://{host.http_address}") as web:
        yield web


async def begun(targets: Targets, metadata: dict[str, str]) -> Target:
    target = targets.find(NAMESPACE, NAME, metadata)
    await target.first_decision(PATIENCE_S)
    return target


async def events(web: aiohttp.ClientSession, path: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The messages of a stream: their names and data."""
    async with web.get(path) as response:
        assert response.status == 200
        while True:
            name, data = [(await response.content.readline()).decode() for _ in range(2)]
            assert await response.content.readline() == b"\n"
            yield name.removeprefix("event: ").strip(), json.loads(data.removeprefix("data: "))


def known(value: Any) -> Any:
    """Without what is unknown: null in JSON, absent in a message."""
    if isinstance(value, dict):
        return {key: known(each) for key, each in value.items() if each is not None}
    return [known(each) for each in value] if isinstance(value, list) else value


def as_json(message: Any) -> Any:
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


async def test_the_api_says_what_the_insight_service_says(
    web: aiohttp.ClientSession, host: Host, targets: Targets
) -> None:
    await begun(targets, SLOW)
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        insight = InsightStub(channel)
        explained = await insight.Explain(pb.TargetRef(namespace=NAMESPACE, name=NAME))
        listed = await insight.ListTargets(pb.ListTargetsRequest())
    async with web.get(TARGET) as response:
        assert known(await response.json()) == as_json(explained)
    async with web.get("/api/v1/targets") as response:
        assert known((await response.json())["targets"]) == as_json(listed)["targets"]


async def test_a_moment_of_the_past_can_be_asked_for(
    web: aiohttp.ClientSession, fleet: Fleet, targets: Targets
) -> None:
    target = await begun(targets, POLICY)
    first = target.latest
    assert first is not None
    fleet.waiting = 120
    await until(lambda: target.latest and target.latest.decision.desired == 14, "a higher count")
    async with web.get(TARGET, params={"time": first.time}) as response:
        told = await response.json()
    assert (told["time"], told["replicas"]["desired"]) == (first.time, first.decision.desired)


@pytest.mark.parametrize("time", ["yesterday", "", "nan", "inf"])
async def test_a_time_that_is_none_is_refused_in_words(web: aiohttp.ClientSession, targets: Targets, time: str) -> None:
    await begun(targets, POLICY)
    async with web.get(TARGET, params={"time": time}) as response:
        assert response.status == 400
        assert "right are Unix seconds" in (await response.json())["error"]


async def test_an_unknown_target_is_not_found_and_the_known_ones_are_named(
    web: aiohttp.ClientSession, targets: Targets
) -> None:
    await begun(targets, POLICY)
    for path in ("", "/configuration"):
        async with web.get(f"/api/v1/targets/serving/qwen{path}") as response:
            assert response.status == 404
            assert (await response.json())["error"] == "no target serving/qwen; known are serving/llama"


async def test_before_the_first_decision_the_reason_is_told(
    web: aiohttp.ClientSession, fleet: Fleet, targets: Targets
) -> None:
    fleet.missing = "serving/llama: no such ScaledObject"
    target = targets.find(NAMESPACE, NAME, POLICY)
    await until(lambda: target.reason == fleet.missing, "a tick")
    async with web.get(TARGET) as response:
        assert response.status == 503
        assert await response.json() == {"error": fleet.missing}


async def test_the_list_comes_whole_and_then_only_what_changed(
    web: aiohttp.ClientSession, fleet: Fleet, targets: Targets
) -> None:
    await begun(targets, POLICY)
    stream = events(web, "/api/v1/events")
    _, whole = await anext(stream)
    (key,) = whole["keys"]
    assert whole["rows"][key]["replicas"]["desired"] == 5
    fleet.running = 13
    async for _, message in stream:
        assert "keys" not in message
        if message["rows"]:
            assert message["rows"] == {key: {"running": 13.0}}
            break
    await stream.aclose()


async def test_targets_that_come_and_go_are_told_to_the_list(web: aiohttp.ClientSession, targets: Targets) -> None:
    targets.show([scaled_object("llama", POLICY)])
    stream = events(web, "/api/v1/events")
    _, whole = await anext(stream)
    assert len(whole["keys"]) == 1
    targets.show([scaled_object("qwen", POLICY)])
    async for _, message in stream:
        if "keys" in message:
            assert [key.split("/")[1] for key in message["keys"]] == ["qwen"]
            break
    await stream.aclose()


async def test_an_invalid_trigger_is_listed_with_what_is_wrong(web: aiohttp.ClientSession, targets: Targets) -> None:
    targets.show([scaled_object("llama", {"upscaleDelay": "soon"})])
    async with web.get("/api/v1/targets") as response:
        (told,) = (await response.json())["targets"]
    assert told["state"] == "INVALID"
    assert "upscaleDelay: 'soon' is wrong" in told["reason"]


async def test_a_target_is_streamed_with_its_past_and_then_tick_by_tick(
    web: aiohttp.ClientSession, targets: Targets
) -> None:
    target = await begun(targets, POLICY)
    await until(lambda: len(target.history.points()) > 5, "some ticks")
    stream = events(web, f"{TARGET}/events")
    name, first = await anext(stream)
    assert (name, first["first"]) == ("target", True)
    assert len(first["points"]["times"]) > 5
    assert {row["key"] for row in first["configuration"]} > {"targetOngoingRequests", "staleness"}
    _, later = await anext(stream)
    assert not later["first"]
    assert "configuration" not in later
    assert min(later["points"]["times"]) > max(first["points"]["times"])
    assert later["explanation"]["time"] == later["points"]["times"][-1]
    await stream.aclose()


async def test_a_number_that_is_unknown_is_null(web: aiohttp.ClientSession, fleet: Fleet, targets: Targets) -> None:
    target = await begun(targets, POLICY)
    fleet.silent = True
    await until(lambda: math.isnan(target.history.points().columns["waiting"][-1]), "pods that cannot be read")
    stream = events(web, f"{TARGET}/events")
    _, first = await anext(stream)
    await stream.aclose()
    assert first["points"]["columns"]["waiting"][-1] is None
    assert first["explanation"]["load"]["waiting"] is None


async def test_a_stream_of_a_target_that_is_not_there_waits_for_it(
    web: aiohttp.ClientSession, targets: Targets
) -> None:
    stream = events(web, f"{TARGET}/events")
    name, message = await anext(stream)
    assert (name, message["error"]) == ("missing", "no target serving/llama; known are none yet")
    await begun(targets, POLICY)
    async for name, _ in stream:
        if name == "target":
            break
    targets.show([scaled_object("llama", POLICY)])
    targets.show([])
    async for name, _ in stream:
        if name == "missing":
            break
    await stream.aclose()


async def test_nothing_runs_while_nobody_looks(web: aiohttp.ClientSession, targets: Targets) -> None:
    def looking() -> bool:
        return any(task.get_name() == "page overview" for task in asyncio.all_tasks())

    await begun(targets, POLICY)
    assert not looking()
    streams = [events(web, "/api/v1/events") for _ in range(2)]
    for stream in streams:
        await anext(stream)
    assert looking()
    for stream in streams:
        await stream.aclose()
    await until(lambda: not looking(), "the end of looking")


async def test_streams_end_when_the_scaler_stops(fleet: Fleet) -> None:
    targets = Targets(World(fleet, fleet))
    async with aiohttp.ClientSession() as web, hosted(fleet, targets=targets) as host:
        await begun(targets, POLICY)
        response = await web.get(f"http://{host.http_address}/api/v1/events")
        await response.content.readline()
        await host.__aexit__(None, None, None)
        async with asyncio.timeout(PATIENCE_S):
            await response.content.read()
        assert response.content.at_eof()


async def test_more_streams_than_people_are_refused(
    web: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaler.serving.page.events.MOST_STREAMS", 1)
    stream = events(web, "/api/v1/events")
    await anext(stream)
    async with web.get("/api/v1/events") as refused:
        assert refused.status == 503
        assert "close one" in (await refused.json())["error"]
    await stream.aclose()


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/vendor/uplot/uPlot.iife.min.js"])
async def test_files_are_sent_once_and_only_from_here(web: aiohttp.ClientSession, path: str) -> None:
    async with web.get(path) as response:
        assert response.status == 200
        assert response.headers["Content-Encoding"] == "gzip"
        policy, etag = response.headers["Content-Security-Policy"], response.headers["ETag"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    async with web.get(path, headers={"If-None-Match": etag}) as response:
        assert response.status == 304


@pytest.mark.parametrize("path", ["/static/../routes.py", "/static/%2e%2e/routes.py", "/static/nothing.js", "/static/"])
async def test_only_the_pages_own_files_can_be_had(web: aiohttp.ClientSession, path: str) -> None:
    async with web.get(path) as response:
        assert response.status == 404


async def test_with_a_token_only_its_bearer_is_answered(fleet: Fleet, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("open sesame\n")
    targets = Targets(World(fleet, fleet))
    async with Host(targets, Ports(LOOPBACK, LOOPBACK, page_token=secret)) as host, aiohttp.ClientSession() as web:
        await begun(targets, POLICY)
        root = f"http://{host.http_address}"

        async def status(path: str, shown: str | None) -> int:
            headers = {"Authorization": shown} if shown else {}
            async with web.get(f"{root}{path}", headers=headers) as response:
                return response.status

        for path in ("/api/v1/targets", "/api/v1/events", TARGET, f"{TARGET}/events", f"{TARGET}/configuration"):
            for wrong in (None, "Bearer knock", "Basic open sesame", "Bearer", "Bearer öpen"):
                assert await status(path, wrong) == 401
            assert await status(path, "Bearer open sesame") == 200
        assert await status("/", None) == await status("/metrics", None) == await status("/healthz", None) == 200
        secret.write_text("another")
        assert await status(TARGET, "Bearer open sesame") == 401
        assert await status(TARGET, "bearer another") == 200


async def test_an_empty_token_file_is_refused_at_the_start(fleet: Fleet, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(" \n")
    with pytest.raises(OSError, match="is empty"):
        Host(Targets(World(fleet, fleet)), Ports(LOOPBACK, LOOPBACK, page_token=secret))


def scaled_object(name: str, metadata: dict[str, str]) -> ScaledObject:
    triggers = (Trigger(0, "external", metadata),)
    return ScaledObject(
        NAMESPACE, name, f"uid-{name}", 1, "apps/v1", "Deployment", name, 1, 20, 300.0, 30.0, False, triggers
    )
