"""Objects of a real API server as they are now, told again whenever one changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from tests.cluster.control_plane import ControlPlane, Manifest

_RETRY_S = 0.2
_WATCH_S = 300
_SILENCE_S = 10.0
"""For what is no watch, which may be silent for as long as it lasts."""


def watch_pods(plane: ControlPlane, namespace: str, selector: str) -> AsyncIterator[Mapping[str, Manifest]]:
    """The pods that the selector picks, as `watch`."""
    return watch(plane, f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})


async def watch(plane: ControlPlane, path: str, query: Mapping[str, str]) -> AsyncIterator[Mapping[str, Manifest]]:
    """The objects of a collection that the selectors of the query pick, by uid, at the start and after every change.

    It outlasts an API server that is away: then the objects are listed anew. Raises httpx.HTTPStatusError where the
    API server refuses.
    """
    async with plane.async_client() as client:
        while True:
            try:
                listed = await _list(client, path, query)
                objects: dict[str, Manifest] = {item["metadata"]["uid"]: item for item in listed["items"]}
                yield objects
                version = listed["metadata"]["resourceVersion"]
                further = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(_WATCH_S)}
                async for event in _events(client, path, {**query, **further}):
                    item = event["object"]
                    if event["type"] == "DELETED":
                        objects.pop(item["metadata"]["uid"], None)
                    else:
                        objects[item["metadata"]["uid"]] = item
                    yield objects
            except httpx.TransportError:
                await asyncio.sleep(_RETRY_S)
            except httpx.HTTPStatusError as error:
                if error.response.is_client_error:
                    raise
                await asyncio.sleep(_RETRY_S)


async def _list(client: httpx.AsyncClient, path: str, query: Mapping[str, str]) -> dict[str, Any]:
    reply = await client.get(path, params=query, timeout=_SILENCE_S)
    found: dict[str, Any] = reply.raise_for_status().json()
    return found


async def _events(client: httpx.AsyncClient, path: str, query: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    """Until the API server ends the watch, or has forgotten the version to go on from."""
    timeout = httpx.Timeout(_SILENCE_S, read=None)
    async with client.stream("GET", path, params=query, timeout=timeout) as reply:
        if reply.is_success:
            async for line in reply.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event
