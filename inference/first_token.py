"""An engine is ready when it has made a token: kernels are compiled, graphs captured and weights in place by then."""

from __future__ import annotations

import json
import os

from inference.asgi import Application, Scope, call


class NoToken(Exception):
    """The engine did not make a token; the message says what it said instead."""


async def first_token(app: Application, like: Scope | None = None) -> None:
    """Let the application of an engine with OpenAI's API make one token; `like` as for `call`. Raises NoToken."""
    key = os.environ.get("VLLM_API_KEY")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    status, body = await call(app, "GET", "/v1/models", like=like, **headers)
    if status != 200:
        raise NoToken(f"GET /v1/models says {status} {body[:200]!r}")
    try:
        model = json.loads(body)["data"][0]["id"]
    except (ValueError, LookupError, TypeError):
        raise NoToken(f"GET /v1/models names no model: {body[:200]!r}") from None
    question = {"model": model, "prompt": "1", "max_tokens": 1, "temperature": 0}
    status, body = await call(app, "POST", "/v1/completions", question, like=like, **headers)
    if status != 200:
        raise NoToken(f"POST /v1/completions says {status} {body[:200]!r}")
