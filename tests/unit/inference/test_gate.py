"""The gate before an engine: ready after a first token, in turn, told in time when there is no room, and a good end."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import socketserver
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from inference import drain
from inference.asgi import Application, Message, Receive, Scope, Send, answer, call
from inference.first_token import NoToken, first_token
from inference.gate import Gate
from inference.meter import Gauges
from inference.server import Server
from inference.settings import GateSettings
from inference.simulated.openai import SimulatedEngine
from scaler.policy import SettingsError
from tests.waiting import until


def settings(**values: object) -> GateSettings:
    return GateSettings.model_validate({"drainGrace": 0, **values})


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[SimulatedEngine]:
    simulated = SimulatedEngine()
    yield simulated
    await simulated.stop()


def ask(app: Application, tokens: int, **more: Any) -> asyncio.Task[tuple[int, bytes]]:
    """A request for so many tokens, on its way."""
    body = {"model": "simulated", "prompt": "Say it.", "max_tokens": tokens, **more}
    return asyncio.create_task(call(app, "POST", "/v1/completions", body))


async def test_a_replica_is_ready_when_its_engine_has_made_a_token() -> None:
    may_answer = asyncio.Event()
    asked = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        if scope["path"] == "/v1/completions":
            await may_answer.wait()
        body = json.dumps({"data": [{"id": "m"}]}).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    gate = Gate(app, settings())
    assert (await call(gate, "GET", "/health"))[0] == 503
    await until(lambda: asked == ["/v1/models", "/v1/completions"], "the first request for a token")
    assert (await call(gate, "GET", "/health"))[0] == 503
    may_answer.set()
    await until(lambda: gate._is_warm, "a token")
    assert (await call(gate, "GET", "/health"))[0] == 200
    assert gate.load(Gauges()).arrival_rate is None  # our own question is no load


async def test_an_engine_that_fails_its_first_token_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.gate._TRY_AGAIN_S", 0.001)
    answers = iter([500, 200, 500, 200, 200])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": next(answers), "headers": []})
        await send({"type": "http.response.body", "body": b'{"data": [{"id": "m"}]}'})

    await asyncio.wait_for(Gate(app, settings()).warm(), 30)
    assert next(answers, None) is None


@pytest.mark.parametrize("said", [b"", b"{}", b"[]", b"null", b'{"data": []}', b'{"data": {"id": "m"}}', b"\xff"])
async def test_an_engine_that_names_no_model_has_made_no_token(said: bytes) -> None:
    with pytest.raises(NoToken, match="GET /v1/models names no model: b'"):
        await first_token(saying("application/json", said))


async def test_requests_beyond_the_limit_wait_and_are_told_when_it_takes_too_long(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings(maxNumSeqs=2, ttftSlo="300ms"))
    long = [ask(gate, 200) for _ in range(2)]
    await until(lambda: engine.gauges().running == 2, "two in the engine")
    status, body = await ask(gate, 1)
    assert status == 429
    assert json.loads(body)["error"]["message"] == "no turn within 0.2s"
    assert [status for status, _ in await asyncio.gather(*long)] == [200, 200]
    assert (await ask(gate, 1))[0] == 200


async def test_a_request_begins_as_soon_as_another_ends(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings(maxNumSeqs=1, ttftSlo="1m"))
    answers = await asyncio.gather(*(ask(gate, 5) for _ in range(6)))
    assert [status for status, _ in answers] == [200] * 6
    load = gate.load(engine.gauges())
    assert (load.waiting, load.running) == (0.0, 0.0)
    assert load.tokens_per_request == 5.0


async def test_streams_are_measured_token_by_token(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings())
    status, body = await ask(gate, 30, stream=True)
    assert (status, body.count(b"data: ")) == (200, 31)
    latency = gate.load(engine.gauges()).latency
    assert latency.keys() == {"ttft", "tpot", "e2e"}
    assert latency["e2e"].p50 == pytest.approx(latency["ttft"].p50 + 29 * latency["tpot"].p50, rel=0.05)


def saying(content_type: str | None, *parts: bytes) -> Application:
    """An engine that answers everything in these words."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {"type": "http.response.start", "status": 200}
        if content_type is not None:
            start["headers"] = [(b"Content-Type", content_type.encode())]
        await send(start)
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    return app


@pytest.mark.parametrize(
    ("content_type", "parts", "tokens"),
    [
        (None, (b'{"usage": {"completion_tokens": 7}}',), 7.0),
        (None, (), None),
        ("application/json", (b'{"usage": {"completion_tokens": %s}}' % (b"9" * 5000),), None),
        ("application/json", (b'{"text": "\\"completion_tokens\\": 9"}',), None),
        ("text/event-stream", (b'data: {"text": "data: data: data: "}\n\n', b"data: {}\n\ndata: [DONE]\n\n"), 2.0),
        ("text/event-stream", (b"data: [DONE]\n\n",), None),
        ("text/event-stream", (b"\xff\x00", b""), None),
    ],
)
async def test_whatever_an_engine_says_comes_through_and_counts_as_far_as_it_can_be_understood(
    content_type: str | None, parts: tuple[bytes, ...], tokens: float | None
) -> None:
    gate = Gate(saying(content_type, *parts), settings())
    assert await ask(gate, 1) == (200, b"".join(parts))
    load = gate.load(Gauges())
    assert (load.tokens_per_request, load.running) == (tokens, 0.0)


async def test_an_application_that_fails_gives_its_turn_back() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise OSError("the engine has ended")

    gate = Gate(app, settings(maxNumSeqs=1))
    for _ in range(3):
        with pytest.raises(OSError, match="has ended"):
            await ask(gate, 1)
    assert gate._ongoing == 0


async def test_a_first_token_counts_while_its_request_still_runs(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings())
    long = ask(gate, 2000, stream=True)
    await until(lambda: "ttft" in gate.load(engine.gauges()).latency, "a first token")
    assert gate.load(engine.gauges()).running == 1
    long.cancel()


async def test_a_client_that_leaves_gives_its_turn_back(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings(maxNumSeqs=1, ttftSlo="1m"))
    first, second, third = ask(gate, 100), ask(gate, 100), ask(gate, 1)
    await until(lambda: gate.load(engine.gauges()).waiting == 2, "two that wait")
    second.cancel()
    assert (await first)[0] == (await third)[0] == 200
    assert gate._ongoing == 0


POST = {"type": "http", "method": "POST", "path": "/v1/completions", "headers": []}


async def test_a_client_that_sends_slowly_keeps_nobody_waiting(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings(maxNumSeqs=1, ttftSlo="1m"))
    sent: asyncio.Queue[Message] = asyncio.Queue()
    answered: list[Message] = []

    async def send(message: Message) -> None:
        answered.append(message)

    slow = asyncio.create_task(gate(dict(POST), sent.get, send))
    sent.put_nowait({"type": "http.request", "body": b'{"model": "simulated", ', "more_body": True})
    assert (await ask(gate, 3))[0] == 200
    sent.put_nowait({"type": "http.request", "body": b'"prompt": "Say it.", "max_tokens": 2}'})
    await slow
    assert answered[0]["status"] == 200
    assert gate.load(engine.gauges()).arrival_rate is not None


async def test_a_client_that_leaves_before_it_has_sent_all_is_no_request() -> None:
    messages: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Message:
        return messages.pop()

    gate = Gate(_never, settings())
    await gate(dict(POST), receive, _unsent)
    assert not messages
    assert gate._ongoing == 0
    assert gate.load(Gauges()).arrival_rate is None


async def test_a_body_in_many_parts_arrives_as_it_was_sent() -> None:
    parts = [b"{", b"", b'"a": ', b"1}"]
    messages: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages += [{"type": "http.request"}, {"type": "http.disconnect"}]
    expected, given = list(messages), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        given.extend([await receive() for _ in expected])
        await answer(send, 200, {})

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        pass

    await Gate(app, settings())(dict(POST), receive, send)
    assert given == expected


async def test_a_replica_that_drains_finishes_what_it_has(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings(drainGrace="100ms", maxNumSeqs=1, ttftSlo="1m"))
    await gate.warm()
    running, waiting = ask(gate, 100), ask(gate, 5)
    await until(lambda: gate.load(engine.gauges()).waiting == 1, "one that waits")
    end = asyncio.create_task(call(gate, "POST", "/drain"))
    await until(lambda: gate._draining, "the drain")
    assert (await call(gate, "GET", "/health"))[0] == 503
    last = ask(gate, 1)  # from a client that does not know yet
    await until(lambda: gate._refusing, "the end of the grace period")
    assert (await ask(gate, 1))[0] == 503
    assert [(await task)[0] for task in (running, waiting, last)] == [200] * 3
    assert await end == (200, b'{"unfinished": 0}')


async def test_a_drain_ends_in_time_and_says_what_is_left(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings(drainTimeout="50ms"))
    endless = ask(gate, 2000)
    await until(lambda: gate._ongoing == 1, "a request")
    assert await call(gate, "POST", "/drain") == (200, b'{"unfinished": 1}')
    endless.cancel()


@pytest.mark.parametrize("client", [("10.0.0.9", 5), None, ("testclient", 5)])
async def test_nobody_else_may_drain_a_pod(client: object) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    gate = Gate(_never, settings())
    await gate({"type": "http", "method": "POST", "path": "/drain", "client": client}, _nothing, send)
    assert sent[0]["status"] == 403
    assert not gate._draining


@pytest.mark.parametrize("client", ["127.0.0.1", "127.0.0.6", "::1", "::ffff:127.0.0.1"])
async def test_a_pod_drains_itself_by_whichever_name_it_has_for_itself(client: str) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    gate = Gate(_never, settings())
    await gate({"type": "http", "method": "POST", "path": "/drain", "client": (client, 5)}, _nothing, send)
    assert sent[0]["status"] == 200


async def test_a_second_drain_waits_for_the_same_end(engine: SimulatedEngine) -> None:
    gate = Gate(await engine.start(), settings())
    busy = ask(gate, 50)
    await until(lambda: gate._ongoing == 1, "a request")
    ends = [asyncio.create_task(call(gate, "POST", "/drain")) for _ in range(2)]
    assert (await busy)[0] == 200
    assert await asyncio.gather(*ends) == [(200, b'{"unfinished": 0}')] * 2


@pytest.mark.parametrize("path", ["/metrics", "/v1/models", "/ping"])
async def test_what_is_no_request_for_tokens_passes(path: str, engine: SimulatedEngine) -> None:
    app = await engine.start()
    gate = Gate(app, settings(maxNumSeqs=1, ttftSlo="10ms"))
    busy = ask(gate, 50)
    assert (await call(gate, "GET", path))[0] == (await call(app, "GET", path))[0]
    assert (await busy)[0] == 200


async def test_a_server_has_started_when_its_engine_has_made_a_token() -> None:
    server = Server(SimulatedEngine(start_up_s=0.05), settings())
    assert server.load() is None
    async with Life(server) as told:
        assert told == ["lifespan.startup.complete"]
        assert (await call(server, "GET", "/health"))[0] == 200
        assert (await call(server, "POST", "/drain"))[0] == 404  # Serve does that by itself
        await server.check()
    assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_server_whose_engine_makes_no_token_says_why() -> None:
    class Mute(SimulatedEngine):
        async def start(self) -> Application:
            async def app(scope: Scope, receive: Receive, send: Send) -> None:
                await answer(send, 500, {"error": "out of memory"})

            return app

    async with Life(Server(Mute(), settings())) as told:
        (said,) = told
    assert said.startswith("lifespan.startup.failed: NoToken: GET /v1/models says 500")


async def test_a_server_whose_engine_does_not_come_up_says_why() -> None:
    class Broken(SimulatedEngine):
        async def start(self) -> Application:
            raise OSError("no weights")

    async with Life(Server(Broken(), settings())) as told:
        assert told == ["lifespan.startup.failed: OSError: no weights"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ttftSlo=3s", "INFERENCE_GATE: not JSON"),
        ("[3]", "INFERENCE_GATE: no object"),
        ('{"ttftSLO": "3s"}', "did you mean ttftSlo?"),
        ('{"longShare": 2}', "longShare: 2 is wrong"),
    ],
)
def test_wrong_settings_are_told(text: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERENCE_GATE", text)
    with pytest.raises(SettingsError, match=told.replace("?", r"\?")):
        Gate(_never)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERENCE_GATE", '{"ttftSlo": "5s", "maxNumSeqs": 64}')
    assert GateSettings.from_environment() == settings(ttftSlo=5, maxNumSeqs=64, drainGrace=5)


async def _never(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("nothing should come here")


async def _unsent(message: Message) -> None:
    raise AssertionError("nothing should be answered")


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


class Life:
    """Runs a server's lifespan around a block; gives what the server says."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._told: list[str] = []
        self._ends = asyncio.Event()
        self._begun = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> list[str]:
        self._task = asyncio.create_task(self._server({"type": "lifespan"}, self._receive, self._send))
        await until(lambda: self._told, "the start")
        return self._told

    async def __aexit__(self, *_: object) -> None:
        self._ends.set()
        assert self._task is not None
        await self._task

    async def _receive(self) -> Message:
        if self._begun:
            await self._ends.wait()
            return {"type": "lifespan.shutdown"}
        self._begun = True
        return {"type": "lifespan.startup"}

    async def _send(self, message: Message) -> None:
        self._told.append(": ".join(filter(None, (message["type"], message.get("message")))))


def test_the_docs_have_every_key_with_its_default() -> None:
    text = (Path(__file__).parents[3] / "docs" / "inference.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \| `?([\w.]+)`? \|", text, re.MULTILINE))
    assert GateSettings.model_validate(told) == GateSettings()
    assert told.keys() == GateSettings.keys().keys()


def test_the_hook_of_a_pod_without_a_gate_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr("sys.argv", ["drain", "--port", str(free.getsockname()[1])])
        assert drain.main() == 2
    assert "does the engine run with --middleware inference.gate.Gate?" in capsys.readouterr().err


@contextmanager
def answering(said: bytes) -> Iterator[int]:
    """A port at which everybody who asks is told the same."""

    class Answerer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(said)

    with socketserver.TCPServer(("127.0.0.1", 0), Answerer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (ok(b'{"unfinished": 0}'), 0),
        (ok(b'{"unfinished": 3}'), 1),
        (ok(b"{}"), 2),
        (ok(b"[]"), 2),
        (ok(b'{"unfinished": null}'), 2),
        (ok(b"hello"), 2),
        (ok(b"\xff"), 2),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", 2),
        (b"\x15\x03\x01 this is TLS\n", 2),
        (b"", 2),
    ],
)
def test_the_hook_ends_as_it_says_whatever_answers_it(
    said: bytes, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # which has no part in it
    with answering(said) as port:
        monkeypatch.setattr("sys.argv", ["drain", "--port", str(port)])
        assert drain.main() == status
    told = capsys.readouterr().err
    assert ("--middleware inference.gate.Gate" in told) == (status == 2)


@pytest.mark.parametrize("port", ["0", "-1", "65536", "http"])
def test_a_port_that_is_none_is_told(
    port: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["drain", f"--port={port}"])
    with pytest.raises(SystemExit) as end:
        drain.main()
    assert end.value.code == 2
    assert "--port" in capsys.readouterr().err
