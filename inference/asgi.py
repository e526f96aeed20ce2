"""The little of ASGI that the gate needs: its types, short answers, and a call of an application from within.

https://asgi.readthedocs.io/en/latest/specs/main.html
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


async def answer(send: Send, status: int, body: Mapping[str, Any], **headers: str) -> None:
    """Answer with JSON; in the names of `headers`, `_` stands for `-`."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    content = json.dumps(body).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode()), *named]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": content})


async def call(app: Application, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    """Ask an application as a client would; returns status and body."""
    content = b"" if body is None else json.dumps(body).encode()
    named = {"host": "localhost", "content-type": "application/json", "content-length": str(len(content)), **headers}
    scope: Scope = {
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
    status, parts = 0, []

    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return status, b"".join(parts)
