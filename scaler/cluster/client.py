"""The Kubernetes API as JSON: get, list, watch, create, replace, patch, apply, delete; each failure is one clear line.

The JSON is read as it comes: model objects would make thousands of pods dear.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
import structlog

from scaler.cluster.connection import Call, Connection
from scaler.cluster.errors import NOT_FOUND, ApiError, ConfigurationError, Subject, WatchSilent, one_line, refusal
from scaler.cluster.resources import Resource

log = structlog.get_logger(__name__)

Json = dict[str, Any]

_MANAGER = "vllm-scaler"
_REQUEST_TIMEOUT_S = 10.0
_LIST_TIMEOUT_S = 60.0
_SILENCE_S = 10.0
"""What a connection that the network has forgotten may cost."""
_RELOAD_INTERVAL_S = 10.0
"""Between two readings of credentials that were refused."""


class ApiClient:
    """A client of one API server. Make it with `connect`; it is an async context manager."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], connection: Connection) -> None:
        self._connect = connect
        self._connection = connection
        self._reloading = asyncio.Lock()
        self._reloaded_at = float("-inf")

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Self:
        """Find the cluster: `kubeconfig`, else $KUBECONFIG, else the pod's own account, else ~/.kube/config.

        A `context` is one of a kubeconfig file. Sends nothing yet. Raises ConfigurationError when there is none.
        """
        connect = partial(Connection.open, kubeconfig, context)
        return cls(connect, await connect())

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._connection.server

    @property
    def namespace(self) -> str:
        """The pod's own namespace, or that of the kubeconfig's context."""
        return self._connection.namespace

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, watches included."""
        await self._connection.close()

    # All of these raise ApiError.

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> Json:
        """Return one object."""
        return await self._ask("GET", Subject("get", resource, namespace, name, subresource))

    async def list(self, resource: Resource, namespace: str = "", **parameters: str) -> Json:
        """Return a page of a collection; `parameters` are the API's: `limit`, `continue` …"""
        return await self._ask(
            "GET", Subject("list", resource, namespace), parameters=parameters, total_s=_LIST_TIMEOUT_S
        )

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        """Create an object and return it as stored."""
        return await self._ask("POST", Subject("create", resource, namespace), body=body)

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        """Put `body` in an object's place; status 409 says that its resourceVersion is not the newest."""
        return await self._ask("PUT", Subject("update", resource, namespace, name), body=body)

    async def apply(self, resource: Resource, body: Json) -> Json:
        """Have an object be as `body` says, made or changed (server-side apply), and return it as stored.

        Status 409 says that somebody else has set one of its fields otherwise.
        """
        metadata = body["metadata"]
        subject = Subject("patch", resource, metadata["namespace"], metadata["name"])
        parameters = {"fieldManager": _MANAGER, "force": "false"}
        content_type = "application/apply-patch+yaml"  # JSON is YAML
        return await self._ask("PATCH", subject, parameters=parameters, body=body, content_type=content_type)

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete an object; one that is not there is deleted already."""
        try:
            await self._ask("DELETE", Subject("delete", resource, namespace, name))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    async def patch(self, resource: Resource, namespace: str, name: str, body: Json, subresource: str = "") -> Json:
        """Merge `body` into an object (JSON merge patch) and return the result."""
        subject = Subject("patch", resource, namespace, name, subresource)
        return await self._ask("PATCH", subject, body=body, content_type="application/merge-patch+json")

    async def patch_json(
        self, resource: Resource, namespace: str, name: str, operations: Sequence[Mapping[str, Any]]
    ) -> Json:
        """Do the operations of a JSON patch, all or none, and return the result; a failed `test` is status 422."""
        subject = Subject("patch", resource, namespace, name)
        return await self._ask("PATCH", subject, body=operations, content_type="application/json-patch+json")

    async def read(self, path: str) -> Json:
        """Return what the API serves under a path, such as the resources of a group."""
        return await self._finish(Call(f"read {path}", "GET", path, total_s=_REQUEST_TIMEOUT_S), f"read {path}")

    async def watch(
        self, resource: Resource, namespace: str, *, timeout_s: float, idle_s: float, **parameters: str
    ) -> AsyncGenerator[Json, None]:
        """Yield the events of a watch. The first one, `{"type": "OPEN"}`, is ours and says that it stands.

        The server ends it after `timeout_s` seconds; nothing for `idle_s` seconds raises WatchSilent.
        """
        subject = Subject("watch", resource, namespace)
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": f"{timeout_s:.0f}", **parameters}
        async with await self._send(Call(str(subject), "GET", subject.path, query, silence_s=idle_s)) as response:
            if response.status != 200:
                raise refusal(subject, response.status, await _body(response, str(subject)), response.headers)
            yield {"type": "OPEN"}
            begun = b""
            try:
                async for chunk in response.content.iter_any():
                    *lines, begun = (begun + chunk).split(b"\n")
                    for line in lines:
                        yield _decode(line, str(subject))
            except TimeoutError:
                raise WatchSilent(f"the watch was silent for {idle_s:g}s ({subject})") from None
            except aiohttp.ClientError as error:
                raise ApiError(f"the watch broke off ({subject}): {one_line(error)}") from None

    async def _ask(
        self,
        method: str,
        subject: Subject,
        *,
        parameters: dict[str, str] | None = None,
        body: Json | Sequence[Mapping[str, Any]] | None = None,
        content_type: str = "application/json",
        total_s: float = _REQUEST_TIMEOUT_S,
    ) -> Json:
        call = Call(str(subject), method, subject.path, parameters or {}, body, content_type, total_s, _SILENCE_S)
        return await self._finish(call, subject)

    async def _finish(self, call: Call, subject: Subject | str) -> Json:
        async with await self._send(call) as response:
            body = await _body(response, call.what)
            if not 200 <= response.status < 300:
                raise refusal(subject, response.status, body, response.headers)
        return _decode(body, call.what)

    async def _send(self, call: Call) -> aiohttp.ClientResponse:
        connection = self._connection
        response = await connection.send(call)
        if response.status == 401 and await self._reload(connection):
            response.release()
            return await self._connection.send(call)
        return response

    async def _reload(self, refused: Connection) -> bool:
        """Read the credentials anew: tokens and client certificates are replaced while we run."""
        async with self._reloading:
            if self._connection is not refused:
                return True  # somebody else has done it
            if time.monotonic() - self._reloaded_at < _RELOAD_INTERVAL_S:
                return False
            self._reloaded_at = time.monotonic()
            try:
                self._connection = await self._connect()
            except ConfigurationError as error:
                log.warning("credentials refused, and there are no others", error=str(error))
                return False
            await refused.close()  # its watches break off and go on with the new credentials
            return True


async def _body(response: aiohttp.ClientResponse, what: str) -> bytes:
    try:
        return await response.read()
    except TimeoutError:
        raise ApiError(f"cannot {what}: the answer does not end in time") from None
    except aiohttp.ClientError as error:
        raise ApiError(f"cannot {what}: the answer broke off: {one_line(error)}") from None


def _decode(body: bytes, what: str) -> Json:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ApiError(f"cannot {what}: the answer is no JSON object: {body[:80]!r}")
    return value
