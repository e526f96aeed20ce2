"""The page's addresses on the HTTP port."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from scaler.serving import views
from scaler.serving.page import detail, files
from scaler.serving.page.events import Streams
from scaler.serving.page.overview import Overview
from scaler.serving.page.protection import add_headers, asks_for, token_of
from scaler.serving.views import View
from scaler.targets import Target, Targets, configuration

_TARGET = "/api/v1/targets/{namespace}/{name}"


class Page:
    """Answers from memory, and only reads."""

    def __init__(self, targets: Targets, not_ready: Callable[[], str], token_file: Path | None = None) -> None:
        """`not_ready` says why this replica is not the one that KEDA asks; empty when it is.

        With `token_file` the API asks for the token in it. Raises OSError when it holds none.
        """
        self._targets = targets
        self._not_ready = not_ready
        self._token = token_of(token_file) if token_file else None
        if self._token:
            self._token.get()
        self._version = metadata.version("vllm-scaler")
        self._streams = Streams()
        self._overview = Overview(targets, self._head)

    def add_to(self, app: web.Application) -> None:
        """Add the page to the HTTP side's application."""
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/static/{file:.+}", self._file),
                web.get("/api/v1/targets", self._list),
                web.get("/api/v1/events", self._watch_all, allow_head=False),
                web.get(_TARGET, self._explain),
                web.get(f"{_TARGET}/configuration", self._configuration),
                web.get(f"{_TARGET}/events", self._watch, allow_head=False),
            ]
        )
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self._streams.stop)
        if self._token:
            app.middlewares.append(asks_for(self._token))

    async def _index(self, request: web.Request) -> web.Response:
        return files.answer(request, files.INDEX)

    async def _file(self, request: web.Request) -> web.Response:
        return files.answer(request, request.match_info["file"])

    async def _list(self, _request: web.Request) -> web.Response:
        return _json({**self._head(), "targets": views.summaries(self._targets)})

    async def _watch_all(self, request: web.Request) -> web.StreamResponse:
        return await self._streams.serve(request, self._overview.stream())

    async def _explain(self, request: web.Request) -> web.Response:
        """The latest decision, or with `time` (Unix seconds) the one that stood then."""
        target = self._target(request)
        record = target.history.at(_moment(request)) if "time" in request.query else target.latest
        if record is None:
            raise _refusal(web.HTTPServiceUnavailable, target.reason or "no decision yet")
        return _json(views.explanation(target, record))

    async def _configuration(self, request: web.Request) -> web.Response:
        return _json([asdict(setting) for setting in configuration(self._target(request))])

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        trigger = request.query.get("trigger", "")
        return await self._streams.serve(request, detail.stream(self._targets, namespace, name, trigger, self._head))

    def _target(self, request: web.Request) -> Target:
        try:
            return self._targets.get(
                request.match_info["namespace"], request.match_info["name"], request.query.get("trigger", "")
            )
        except LookupError as error:
            raise _refusal(web.HTTPNotFound, str(error)) from None

    def _head(self) -> View:
        """What every message begins with: the server's time (Unix seconds) and how it stands."""
        clock = self._targets.world.clock
        return {
            "time": clock.utc(),
            "speed": clock.speed,
            "shadow": self._targets.world.shadow,
            "not_ready": self._not_ready(),
            "version": self._version,
        }


def _moment(request: web.Request) -> float:
    text = request.query["time"]
    try:
        moment = float(text)
    except ValueError:
        moment = math.nan
    if not math.isfinite(moment):
        raise _refusal(web.HTTPBadRequest, f"time: {text[:40]!r} is wrong; right are Unix seconds, say 1764446400.5")
    return moment


def _json(value: Any) -> web.Response:
    response = web.Response(body=orjson.dumps(value), content_type="application/json", charset="utf-8")
    response.headers["Cache-Control"] = "no-store"
    response.enable_compression()
    return response


def _refusal(kind: type[web.HTTPException], text: str) -> web.HTTPException:
    return kind(text=orjson.dumps({"error": text}).decode(), content_type="application/json")
