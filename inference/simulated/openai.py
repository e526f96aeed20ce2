"""The simulated engine behind OpenAI's API, in real time and in this process: for trying things without a GPU.

It answers with as many tokens as it is asked for (`max_tokens`, 16 unless said otherwise), and takes the time that its
profile says. What it says is `token token …`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inference.asgi import Application, Receive, Scope, Send, answer
from inference.meter import Gauges
from inference.simulated.engine import Engine, FirstToken
from inference.simulated.page import Page
from inference.simulated.profile import MEMORY_BOUND, PROFILES
from inference.simulated.request import Request

MODEL = "simulated"
_PLAY_EVERY_S = 0.005
_CHARACTERS_PER_TOKEN = 4


@dataclass(slots=True)
class _Turns:
    """What a request waits for."""

    first: asyncio.Event
    last: asyncio.Event


class SimulatedEngine:
    """Implements `inference.engine.Engine`; `start_up_s` is what loading weights would take."""

    def __init__(self, *, profile: str = MEMORY_BOUND.name, start_up_s: float = 0.0, model: str = MODEL) -> None:
        """Raises KeyError for an unknown profile."""
        self._engine = Engine(PROFILES[profile])
        self._start_up_s = start_up_s
        self._model = model
        self._page = Page(self._engine, model_name=model, started_unix_s=time.time())
        self._waiting: dict[int, _Turns] = {}
        self._player: asyncio.Task[None] | None = None

    async def start(self) -> Application:
        """Begin to play. Returns the API."""
        await asyncio.sleep(self._start_up_s)
        self._player = asyncio.create_task(self._play())
        return self._answer

    async def check(self) -> None:
        """Raise what ended the simulation, if anything did."""
        if self._player is not None and self._player.done():
            self._player.result()

    def gauges(self) -> Gauges:
        """Say what is in the engine."""
        engine = self._engine
        return Gauges(float(engine.waiting), float(engine.running), engine.kv_cache_usage)

    async def stop(self) -> None:
        """End the simulation."""
        if self._player is not None:
            self._player.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._player

    async def _play(self) -> None:
        while True:
            for event in self._engine.advance(time.monotonic()):
                turns = self._waiting[id(event.request)]
                (turns.first if isinstance(event, FirstToken) else turns.last).set()
            await asyncio.sleep(_PLAY_EVERY_S)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["method"], scope["path"]:
            case "GET", "/health":
                await answer(send, 200, {})
            case "GET", "/v1/models":
                await answer(send, 200, {"object": "list", "data": [{"id": self._model, "object": "model"}]})
            case "GET", "/metrics":
                await _send_page(send, self._page.render().encode())
            case "POST", "/v1/completions" | "/v1/chat/completions":
                await self._generate(await _json(receive), scope["path"].startswith("/v1/chat"), send)
            case _:
                await answer(send, 404, {"error": {"message": "Not Found", "type": "not_found", "code": 404}})

    async def _generate(self, question: dict[str, Any], is_chat: bool, send: Send) -> None:
        prompt = json.dumps(question.get("messages")) if is_chat else str(question.get("prompt", ""))
        count = int(question.get("max_tokens") or question.get("max_completion_tokens") or 16)
        request = Request(0.0, max(1, len(prompt) // _CHARACTERS_PER_TOKEN), count)
        turns = self._waiting[id(request)] = _Turns(asyncio.Event(), asyncio.Event())
        try:
            self._engine.submit(request, time.monotonic())
        except ValueError as error:
            del self._waiting[id(request)]
            await answer(send, 400, {"error": {"message": str(error), "type": "invalid_request_error", "code": 400}})
            return
        try:
            form = _Form("chat.completion" if is_chat else "text_completion", self._model, is_chat, request)
            if question.get("stream"):
                await _stream(send, form, turns)
            else:
                await turns.last.wait()
                await answer(send, 200, form.whole())
        finally:
            await turns.last.wait()  # the engine has no way to end one request
            del self._waiting[id(request)]


@dataclass(frozen=True, slots=True)
class _Form:
    """The shapes of an answer."""

    kind: str
    model: str
    is_chat: bool
    request: Request

    def whole(self) -> dict[str, Any]:
        """Return all at once."""
        text = "token " * self.request.output_tokens
        content = {"message": {"role": "assistant", "content": text}} if self.is_chat else {"text": text}
        prompt, output = self.request.prompt_tokens, self.request.output_tokens
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        return {
            **self._head(self.kind),
            "choices": [{"index": 0, **content, "finish_reason": "length"}],
            "usage": usage,
        }

    def events(self, count: int) -> Iterator[bytes]:
        """Return so many tokens as events of a stream."""
        kind = f"{self.kind}.chunk" if self.is_chat else self.kind
        content: dict[str, Any] = {"delta": {"content": "token "}} if self.is_chat else {"text": "token "}
        event = json.dumps({**self._head(kind), "choices": [{"index": 0, **content, "finish_reason": None}]})
        yield from (f"data: {event}\n\n".encode() for _ in range(count))

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"sim-{id(self.request)}", "object": kind, "created": int(time.time()), "model": self.model}


async def _stream(send: Send, form: _Form, turns: _Turns) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await turns.first.wait()
    await send({"type": "http.response.body", "body": b"".join(form.events(1)), "more_body": True})
    await turns.last.wait()
    rest = b"".join(form.events(form.request.output_tokens - 1)) + b"data: [DONE]\n\n"
    await send({"type": "http.response.body", "body": rest})


async def _send_page(send: Send, page: bytes) -> None:
    kind = b"text/plain; version=1.0.0; charset=utf-8"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": page})


async def _json(receive: Receive) -> dict[str, Any]:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    found: dict[str, Any] = json.loads(b"".join(parts) or b"{}")
    return found
