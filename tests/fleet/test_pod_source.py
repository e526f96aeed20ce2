from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from scaler.exposition.sample import Sample
from scaler.sources.pods import PodSource
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from tests.fleet.web import PAGE, SOON, Answer, PodServer, filterable, page, until

HTTP = ReadOptions(namespace="prod")

Start = Callable[..., Awaitable[PodServer]]


@pytest.fixture
async def source() -> AsyncIterator[PodSource]:
    pods = PodSource()
    yield pods
    await pods.close()


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    async with AsyncExitStack() as servers:

        async def started(answer: Answer = page) -> PodServer:
            return await servers.enter_async_context(PodServer(answer))

        yield started


async def hang(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("never reached")


async def read(source: PodSource, *endpoints: Endpoint, deadline_s: float = SOON, options: ReadOptions = HTTP):
    return await source.sample(endpoints, options, deadline_s)


async def test_pods_are_read_by_name(source: PodSource, start: Start) -> None:
    first, second = await start(), await start()

    said = await read(source, first.endpoint("chat-0"), second.endpoint("chat-1"))

    assert {pod: (sample.waiting, sample.running) for pod, sample in said.items()} == {
        "chat-0": (7.0, 4.0),
        "chat-1": (7.0, 4.0),
    }


# One pod's trouble is its own


async def test_one_hung_pod_among_fifty_is_the_only_unknown_one(source: PodSource, start: Start) -> None:
    endpoints = [(await start(hang if i == 17 else page)).endpoint(f"chat-{i}") for i in range(50)]

    said = await read(source, *endpoints, deadline_s=2.0)

    unknown = {pod: outcome.reason for pod, outcome in said.items() if isinstance(outcome, Unknown)}
    assert list(unknown) == ["chat-17"]
    assert unknown["chat-17"].startswith("timed out after 2.")


async def test_no_tick_waits_again_for_a_pod_that_is_silent(source: PodSource, start: Start) -> None:
    hung, well = await start(hang), await start()
    await read(source, hung.endpoint("hung"), well.endpoint("well"), deadline_s=0.05)

    async with asyncio.timeout(SOON / 2):  # far below the deadline of the call
        said = await read(source, hung.endpoint("hung"), well.endpoint("well"), deadline_s=SOON)

    assert isinstance(said["well"], Sample)
    assert said["hung"].reason.startswith("no answer for ")


async def test_a_silent_pod_is_not_asked_a_second_time(source: PodSource, start: Start) -> None:
    hung = await start(hang)
    for _ in range(5):
        await read(source, hung.endpoint(), deadline_s=0.05)

    assert len(hung.asked) == 1


async def test_two_callers_share_one_question(source: PodSource, start: Start) -> None:
    pod = await start()

    first, second = await asyncio.gather(read(source, pod.endpoint()), read(source, pod.endpoint()))

    assert first == second
    assert len(pod.asked) == 1


async def test_a_late_answer_serves_the_next_tick(source: PodSource, start: Start) -> None:
    released = asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        await released.wait()
        return await page(request)

    pod = await start(slow)
    assert isinstance((await read(source, pod.endpoint(), deadline_s=0.05))["chat-0"], Unknown)
    released.set()

    async def answered() -> bool:
        return isinstance((await read(source, pod.endpoint(), deadline_s=0.05))["chat-0"], Sample)

    await until(answered)
    assert len(pod.asked) == 1


async def test_patience_with_a_silent_pod_ends(start: Start) -> None:
    source = PodSource(patience_s=0.1)
    hung = await start(hang)

    async def asked_again() -> bool:
        await read(source, hung.endpoint(), deadline_s=0.02)
        return len(hung.asked) == 2

    await until(asked_again)
    await source.close()
    assert hung.connections == 2, "a question that was given up takes its connection with it"


async def test_a_pod_that_recovers_is_waited_for_again(start: Start) -> None:
    source = PodSource(patience_s=0.1)
    pod = await start(hang)
    await read(source, pod.endpoint(), deadline_s=0.02)
    pod.answer = page

    async def recovered() -> bool:
        return isinstance((await read(source, pod.endpoint(), deadline_s=0.02))["chat-0"], Sample)

    await until(recovered)

    assert isinstance((await read(source, pod.endpoint()))["chat-0"], Sample)
    await source.close()


async def test_nothing_is_left_running_after_close(source: PodSource, start: Start) -> None:
    hung = await start(hang)
    before = asyncio.all_tasks()
    await read(source, hung.endpoint(), deadline_s=0.05)

    await source.close()

    async def nothing_left() -> bool:
        return asyncio.all_tasks() <= before

    await until(nothing_left)


async def test_a_caller_that_is_cancelled_leaves_the_source_whole(source: PodSource, start: Start) -> None:
    hung = await start(hang)
    call = asyncio.create_task(read(source, hung.endpoint()))
    await until(hung.was_asked)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert isinstance((await read(source, hung.endpoint(), deadline_s=0.05))["chat-0"], Unknown)
    assert len(hung.asked) == 1


# What a pod may answer


async def redirect(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": "/elsewhere"})


async def unavailable(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"error": "The model is currently scaling." + " Please try again." * 20}, status=503)


async def forbidden(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=403)


async def web_page(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="<html><body>Hello</body></html>", content_type="text/html")


async def compressed(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})


async def closed(request: web.BaseRequest) -> web.StreamResponse:
    request.transport.close()
    return web.Response()


async def broken_off(request: web.BaseRequest) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Length": "1000"})
    await answer.prepare(request)
    await answer.write(PAGE.encode()[:100])
    request.transport.close()
    return answer


async def no_http(request: web.BaseRequest) -> web.StreamResponse:
    request.transport.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (redirect, "HTTP 307 to /elsewhere: redirects are not followed"),
        (unavailable, 'HTTP 503: {"error": "The model is currently scaling. Please try again. Please try again. …'),
        (forbidden, "HTTP 403: Forbidden"),
        (web_page, "answered with a page of another kind: "),
        (compressed, "answered in gzip, although plain text was asked for"),
        (closed, "the connection was closed without an answer"),
        (broken_off, "the answer broke off before its end"),
        (no_http, "the answer is not HTTP: "),
    ],
)
async def test_what_is_no_page_is_unknown_with_its_reason(
    source: PodSource, start: Start, answer: Answer, reason: str
) -> None:
    pod, well = await start(answer), await start()

    said = await read(source, pod.endpoint("chat-0"), well.endpoint("well"))

    assert said["chat-0"].reason.startswith(reason)
    assert isinstance(said["well"], Sample)
    assert "/elsewhere" not in pod.paths


async def test_a_closed_port_refuses_the_connection(source: PodSource, start: Start) -> None:
    async with PodServer() as gone:
        endpoint = gone.endpoint()

    assert await read(source, endpoint) == {"chat-0": Unknown("connection refused")}


@pytest.mark.parametrize("host", ["localhost", "vllm.prod.svc", "", "127.1", "10.0.0.300"])
async def test_only_ip_addresses_are_asked(source: PodSource, host: str) -> None:
    said = await read(source, Endpoint("chat-0", "u0", host, 80))

    assert said == {"chat-0": Unknown(f"{host!r} is not an IP address")}


# How a pod is asked


async def test_the_question_asks_for_plain_text_and_nothing_else(source: PodSource, start: Start) -> None:
    pod = await start()

    await read(source, pod.endpoint())

    headers = pod.asked[0].headers
    assert headers["Accept"] == "text/plain; version=0.0.4"
    assert headers["Accept-Encoding"] == "identity"
    assert "Authorization" not in headers


async def test_cookies_are_not_sent_back(source: PodSource, start: Start) -> None:
    async def sweet(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=PAGE, headers={"Set-Cookie": "session=1; Path=/"})

    pod = await start(sweet)
    for _ in range(3):
        await read(source, pod.endpoint())

    assert len(pod.asked) == 3
    assert not any("Cookie" in request.headers for request in pod.asked)


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/metrics", "/metrics"),
        ("/prometheus/metrics", "/prometheus/metrics"),
        ("/metrics?model=a%20b", "/metrics?model=a%20b"),
        ("/metrics?model=a b", "/metrics?model=a+b"),
        ("metrics", "/metrics"),
        ("@192.0.2.1/metrics", "/@192.0.2.1/metrics"),
        ("//192.0.2.1/metrics", "//192.0.2.1/metrics"),
    ],
)
async def test_the_path_stays_on_the_pod(source: PodSource, start: Start, path: str, asked: str) -> None:
    pod = await start()

    await read(source, pod.endpoint(), options=ReadOptions(path=path))

    assert [request.raw_path for request in pod.asked] == [asked]


async def test_connections_are_used_again(source: PodSource, start: Start) -> None:
    pods = [await start() for _ in range(5)]
    for _ in range(10):
        await read(source, *(pod.endpoint(f"chat-{i}") for i, pod in enumerate(pods)))

    assert [pod.connections for pod in pods] == [1] * 5
    assert [pod.paths.count("/metrics") for pod in pods] == [10] * 5


# Pages without end


@pytest.mark.parametrize("length", [None, "1000000000"], ids=["unannounced", "announced"])
async def test_a_page_over_the_cap_is_not_read_to_its_end(start: Start, length: str | None) -> None:
    source = PodSource(max_page_bytes=2**20)
    cut_off = asyncio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": length} if length else {})
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"# filler\n" * 1000)
        finally:
            cut_off.set()

    pod = await start(endless)

    said = await read(source, pod.endpoint())

    assert said == {"chat-0": Unknown("the page is larger than 1 MiB")}
    async with asyncio.timeout(SOON):
        await cut_off.wait()
    await source.close()


async def test_a_page_of_exactly_the_cap_is_read(start: Start) -> None:
    source = PodSource(max_page_bytes=len(PAGE))
    pod = await start()

    assert isinstance((await read(source, pod.endpoint()))["chat-0"], Sample)
    await source.close()


# The filtered page


async def test_a_pod_that_can_filter_is_asked_for_the_wanted_series_only(source: PodSource, start: Start) -> None:
    pod = await start(filterable)

    said = [(await read(source, pod.endpoint()))["chat-0"] for _ in range(4)]

    assert pod.paths == ["/metrics", "/metrics/", "/metrics/", "/metrics/"]
    assert said == [said[0]] * 4
    assert isinstance(said[0], Sample)


async def empty_when_filtered(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text=PAGE if request.path == "/metrics" else "")


async def poorer_when_filtered(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text=PAGE if request.path == "/metrics" else PAGE.partition("# TYPE vllm:kv")[0])


async def redirect_when_filtered(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text=PAGE) if request.path == "/metrics" else await redirect(request)


@pytest.mark.parametrize("answer", [page, empty_when_filtered, poorer_when_filtered, redirect_when_filtered])
async def test_a_pod_that_cannot_filter_is_probed_once(source: PodSource, start: Start, answer: Answer) -> None:
    pod = await start(answer)

    said = [(await read(source, pod.endpoint()))["chat-0"] for _ in range(4)]

    assert pod.paths == ["/metrics", "/metrics/", "/metrics", "/metrics", "/metrics"]
    assert said == [said[0]] * 4
    assert isinstance(said[0], Sample)


async def test_a_pod_that_breaks_off_when_probed_is_probed_no_more_than_three_times(
    source: PodSource, start: Start
) -> None:
    async def breaks(request: web.BaseRequest) -> web.StreamResponse:
        return await page(request) if request.path == "/metrics" else await broken_off(request)

    pod = await start(breaks)

    said = [(await read(source, pod.endpoint()))["chat-0"] for _ in range(6)]

    assert all(isinstance(sample, Sample) for sample in said)
    assert pod.paths.count("/metrics/") == 3


async def test_a_new_pod_under_an_old_name_is_probed_anew(source: PodSource, start: Start) -> None:
    pod = await start(page)
    for uid in ("u0", "u0", "u0", "u1", "u1"):
        await read(source, pod.endpoint(uid=uid))

    assert pod.paths.count("/metrics/") == 2


async def test_a_pod_that_filters_no_longer_is_read_in_full_in_the_same_tick(source: PodSource, start: Start) -> None:
    pod = await start(filterable)
    await read(source, pod.endpoint())
    await read(source, pod.endpoint())
    pod.answer = empty_when_filtered

    assert isinstance((await read(source, pod.endpoint()))["chat-0"], Sample)
    assert pod.paths == ["/metrics", "/metrics/", "/metrics/", "/metrics"]


async def test_a_pod_that_is_unavailable_for_a_while_keeps_its_filtered_page(source: PodSource, start: Start) -> None:
    pod = await start(filterable)
    await read(source, pod.endpoint())
    await read(source, pod.endpoint())
    pod.answer = unavailable
    assert isinstance((await read(source, pod.endpoint()))["chat-0"], Unknown)
    pod.answer = filterable

    assert isinstance((await read(source, pod.endpoint()))["chat-0"], Sample)
    assert pod.paths == ["/metrics", "/metrics/", "/metrics/", "/metrics/"]


@pytest.mark.parametrize("path", ["/other/metrics", "/metrics?model=m", "/metrics/"])
async def test_a_path_of_the_users_own_is_never_changed(source: PodSource, start: Start, path: str) -> None:
    async def anywhere(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=PAGE)

    pod = await start(anywhere)
    for _ in range(3):
        await read(source, pod.endpoint(), options=ReadOptions(path=path))

    assert pod.paths == [path.partition("?")[0]] * 3
