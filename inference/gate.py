"""What stands before an engine's OpenAI-compatible API: admission, readiness, drain, and a look at every request.

It is ASGI middleware. In a plain pod vLLM takes it itself, with its settings in the environment:

    INFERENCE_GATE='{"ttftSlo": "3s"}' vllm serve MODEL --middleware inference.gate.Gate

- `GET /health` is 503 until the engine has made a first token, and again while the replica drains.
- `POST /v1/…` waits for its turn once its body is there, two thirds of `ttftSlo` at most; then the answer is 429 with
  `Retry-After`.
- `POST /drain`, from the pod itself, begins the end and answers when the last request is served (`inference.drain`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import re
import time
from collections.abc import Callable
from typing import Any

from inference.admission import Admission, RequestClass, class_of
from inference.asgi import Application, Message, Receive, Scope, Send, answer, whole
from inference.first_token import first_token
from inference.meter import Gauges, Meter
from inference.settings import GateSettings
from scaler.policy import Load

log = logging.getLogger(__name__)

_EVENT = re.compile(rb"^data: (?!\[DONE\])", re.MULTILINE)
"""A token of a stream. Inside of one nothing is at the beginning of a line: JSON has no line breaks in its texts."""
_USAGE = re.compile(rb'"completion_tokens": ?(\d{1,9})\b')
_MODEL_PATHS = "/v1/"
_TRY_AGAIN_S = 1.0


class Gate:
    """Admits requests to the application `app`, one for each process."""

    def __init__(
        self,
        app: Application,
        settings: GateSettings | None = None,
        *,
        may_drain: bool = True,
        is_warm: bool = False,
    ) -> None:
        """Without settings they are those of the environment. Raises SettingsError."""
        self._app = app
        self._settings = settings or GateSettings.from_environment()
        self._may_drain = may_drain
        self._admission: Admission[asyncio.Future[None]] = Admission(self._settings)
        self._meter = Meter()
        self._is_warm = is_warm
        self._warming: asyncio.Task[None] | None = None
        self._draining = False
        self._refusing = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        match scope["method"], scope["path"]:
            case "GET", "/health":
                await self._health(scope, receive, send)
            case "POST", "/drain" if self._may_drain:
                await self._answer_drain(scope, send)
            case "POST", path if path.startswith(_MODEL_PATHS):
                await self._serve(scope, receive, send)
            case _:
                await self._app(scope, receive, send)

    # What others look at

    def load(self, gauges: Gauges) -> Load:
        """Return this replica's load; `gauges` is what the engine says of the moment."""
        return self._meter.load(time.monotonic(), self._admission.waiting, gauges, self._admission.running)

    # Life

    async def warm(self, like: Scope | None = None) -> None:
        """Return when the engine has made a first token, tried until it does; `like` is any request's scope."""
        told = ""
        while not self._is_warm:
            try:
                await first_token(self._app, like)
                self._is_warm = True
            except Exception as error:  # an engine that starts may say anything
                if told != (told := f"{type(error).__name__}: {error}"):
                    log.warning("no first token yet: %s", told)
                await asyncio.sleep(_TRY_AGAIN_S)

    async def drain(self) -> int:
        """Take no new requests and let the others end; returns how many did not, at the end of the time for it."""
        settings = self._settings
        self._draining = True
        await asyncio.sleep(settings.drain_grace_s)
        self._refusing = True
        try:
            async with asyncio.timeout(settings.drain_timeout_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning("drained for %gs, %d requests have not ended", settings.drain_timeout_s, self._ongoing)
        return self._ongoing

    @property
    def _ongoing(self) -> int:
        return self._admission.waiting + self._admission.running

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_warm and self._warming is None:
            self._warming = asyncio.create_task(self.warm(scope))
        if self._draining:
            await answer(send, 503, {"error": "draining"})
        elif not self._is_warm:
            await answer(send, 503, {"error": "no token has been made yet"})
        else:
            await self._app(scope, receive, send)

    async def _answer_drain(self, scope: Scope, send: Send) -> None:
        client = (scope.get("client") or ("",))[0]
        if not _is_local(client):
            await answer(send, 403, {"error": "only from the pod itself"})
            return
        left = await self.drain()
        await answer(send, 200, {"unfinished": left})

    # One request

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (body := await whole(receive)) is None:
            return
        if self._refusing:
            await answer(send, 503, _error("this replica is going"), retry_after="1", connection="close")
            return
        came = time.monotonic()
        self._meter.arrived(came)
        kind = class_of(dict(scope["headers"]), self._settings.long_from)
        turn = asyncio.get_running_loop().create_future()
        self._admission.enter(kind, turn)
        self._idle.clear()
        try:
            self._admit()
            if not turn.done():
                await asyncio.wait([turn], timeout=self._admission.longest_wait_s)
            if not turn.done():
                longest = self._admission.longest_wait_s
                await answer(send, 429, _error(f"no turn within {longest:g}s"), retry_after=str(math.ceil(longest)))
                return
            begun = time.monotonic()
            watch = _Watch(send, lambda at: self._note_first(at, came, begun))
            await self._app(scope, body, watch)
            self._note_last(watch, came, begun)
        finally:
            self._end(kind, turn)

    def _admit(self) -> None:
        for turn in self._admission.admit(time.monotonic()):
            turn.set_result(None)

    def _end(self, kind: RequestClass, turn: asyncio.Future[None]) -> None:
        if turn.done():
            self._admission.leave(kind)
        else:
            self._admission.withdraw(kind, turn)
        self._admit()
        if not self._ongoing:
            self._idle.set()

    def _note_first(self, at: float, came: float, begun: float) -> None:
        """Take note of the first token of a stream."""
        self._meter.first_token(at, at - came)
        self._admission.limit.first_token(at, at - begun)

    def _note_last(self, watch: _Watch, came: float, begun: float) -> None:
        """Take note of a request that was served."""
        now = time.monotonic()
        if watch.status != 200:
            return
        tokens, token_s = watch.tokens, None
        if watch.first_at is not None:
            if tokens and tokens > 1:
                token_s = (watch.last_at - watch.first_at) / (tokens - 1)
        elif tokens:
            token_s = (now - begun) / tokens  # the prompt's time is in it
        if token_s is not None:
            self._admission.limit.finished(now, token_s)
        self._meter.finished(now, now - came, tokens, token_s)


class _Watch:
    """Passes an answer on, and sees its tokens go by; `on_first` is told when the first one of a stream does."""

    def __init__(self, send: Send, on_first: Callable[[float], None]) -> None:
        self._send = send
        self._on_first = on_first
        self._is_stream = False
        self.status = 0
        self.first_at: float | None = None
        self.last_at = 0.0
        """When the first and the last event of a stream went by."""
        self.tokens: int | None = None
        """What the answer says itself; in a stream that does not say it, its events, about one for each token."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._is_stream = _is_stream(message)
        elif message["type"] == "http.response.body":
            self._look(message.get("body", b""))
        await self._send(message)

    def _look(self, body: bytes) -> None:
        if self._is_stream and (events := len(_EVENT.findall(body))):
            self.last_at = time.monotonic()
            if self.first_at is None:
                self.first_at = self.last_at
                self._on_first(self.first_at)
            self.tokens = (self.tokens or 0) + events
        if found := _USAGE.search(body):
            self.tokens = int(found[1])


def _is_stream(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )


def _is_local(client: str) -> bool:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return False
    # What listens on all of IPv6 sees 127.0.0.1 as ::ffff:127.0.0.1, which Python before 3.13 takes for no loopback.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _error(message: str) -> dict[str, Any]:
    """Return an error as OpenAI's API has them."""
    return {"error": {"message": message, "type": "overloaded_error", "code": None}}
