"""The little of ASGI that the gate needs: its types, short answers, and a call of an application from within.

https://asgi.readthedocs.io/en/latest/specs/main.html
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_LEFT_BY_OTHERS = ("app", "state")
"""Starlette's application and the state of its lifespan."""


async def answer(send: Send, status: int, body: Mapping[str, Any], **headers: str) -> None:
    """Answer with JSON; in the names of `headers`, `_` stands for `-`."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    content = json.dumps(body).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode()), *named]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": content})


async def whole(receive: Receive) -> Receive | None:
    """Wait until a request's body is there, and return what gives it anew; None where the client left before.

    Applications read the body as a whole anyway. Who begins only then is held up by no client that sends slowly.
    """
    parts: deque[Message] = deque()
    while not parts or parts[-1].get("more_body", False):
        parts.append(message := await receive())
        if message["type"] == "http.disconnect":
            return None

    async def again() -> Message:
        return parts.popleft() if parts else await receive()

    return again


async def call(
    app: Application, method: str, path: str, body: Any = None, *, like: Scope | None = None, **headers: str
) -> tuple[int, bytes]:
    """Ask an application as a client would; returns status and body.

    Where it is not a whole application but what is inside its middleware, `like` is the scope of any request that came
    through: the outer part leaves things there that the inner part needs.
    """
    content = b"" if body is None else json.dumps(body).encode()
    named = {"host": "localhost", "content-type": "application/json", "content-length": str(len(content)), **headers}
    scope: Scope = {
        **{key: value for key, value in (like or {}).items() if key in _LEFT_BY_OTHERS},
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 0),
        "server": ("localhost", 80),
    }
    status, parts, asked = 0, [], asyncio.Event()

    async def receive() -> Message:
        if asked.is_set():
            await asyncio.Event().wait()  # for as long as the answer takes: this client does not leave
        asked.set()
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return status, b"".join(parts)
