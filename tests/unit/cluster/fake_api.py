"""A small API server in the test's own process that keeps objects, serves lists and watches, and fails on demand."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml
from aiohttp import web

from scaler.cluster.resources import Resource

Json = dict[str, Any]
Key = tuple[str, str]

_PATH = re.compile(
    r"(?:/api/(?P<core>[^/]+)|/apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)


@dataclass(slots=True)
class _Change:
    version: int
    kind: str
    key: Key
    item: Json


@dataclass(slots=True)
class _Collection:
    items: dict[Key, Json] = field(default_factory=dict)
    changes: list[_Change] = field(default_factory=list)
    scales: dict[Key, Json] = field(default_factory=dict)


class FakeApi:
    """An async context manager. Change what is there by `put` and `delete`, and how it behaves by the attributes."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.requests: Counter[tuple[str, str]] = Counter()
        """By RBAC verb and plural."""
        self.tokens: list[str] = []
        self.groups: dict[str, list[Json]] = {}
        """Resources by the path of their group."""
        self.refuse: dict[tuple[str, str], list[tuple[int, Json, dict[str, str]]]] = {}
        """Answers to give instead, once each, by verb and plural."""
        self.forbidden: set[tuple[str, str]] = set()
        self.token: str | None = None
        """The only token that is taken, where one is given."""
        self.silent = False
        """Watches say nothing more, and do not end."""
        self.hung = asyncio.Event()
        """Set while requests are answered."""
        self.hung.set()
        self.oldest = 0
        """Versions before this are no longer known."""
        self._version = 100
        self._collections: dict[str, _Collection] = {}
        self._changed = asyncio.Condition()
        self._watches: set[web.StreamResponse] = set()
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listens, again on the same port after a stop."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.write_kubeconfig("secret")

    async def stop(self) -> None:
        """Goes away: every connection ends."""
        await self.drop_watches()
        await self._runner.cleanup()

    def write_kubeconfig(self, token: str) -> None:
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "keda"}}],
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}],
            "users": [{"name": "test", "user": {"token": token}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))

    async def put(self, resource: Resource, *items: Json, said: bool = True) -> None:
        """Creates or changes objects; unless `said`, no watch ever hears of it."""
        collection = self._collection(resource)
        for item in items:
            key = (item["metadata"]["namespace"], item["metadata"]["name"])
            kind = "MODIFIED" if key in collection.items else "ADDED"
            self._version += 1
            item["metadata"]["resourceVersion"] = str(self._version)
            collection.items[key] = item
            if said:
                collection.changes.append(_Change(self._version, kind, key, item))
        await self._tell()

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        collection = self._collection(resource)
        item = collection.items.pop((namespace, name))
        self._version += 1
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self._version)}}
        collection.changes.append(_Change(self._version, "DELETED", (namespace, name), item))
        await self._tell()

    async def say(self, resource: Resource, event: Json) -> None:
        """Sends an event of the test's own making to every watch of a resource."""
        change = _Change(self._version, event["type"], ("", ""), event["object"])
        self._collection(resource).changes.append(change)
        await self._tell()

    def item(self, resource: Resource, namespace: str, name: str) -> Json:
        return self._collection(resource).items[namespace, name]

    def items(self, resource: Resource) -> list[Json]:
        return list(self._collection(resource).items.values())

    async def set_scale(self, resource: Resource, namespace: str, name: str, scale: Json | None) -> None:
        """Says what `/scale` reports; None removes it."""
        scales = self._collection(resource).scales
        if scale is None:
            del scales[namespace, name]
        else:
            scales[namespace, name] = scale

    async def drop_watches(self) -> None:
        """Breaks every watch off in the middle."""
        for watch in self._watches:
            transport = watch._req.transport if watch._req is not None else None
            if transport is not None:
                transport.abort()
        self._watches.clear()
        await self._tell()

    def forget_history(self) -> None:
        """No watch can go on from where it was."""
        self.oldest = self._version + 1
        self._version += 2

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _collection(self, resource: Resource) -> _Collection:
        return self._collections.setdefault(f"{resource.group}/{resource.plural}", _Collection())

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        await self.hung.wait()
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.token is not None and self.tokens[-1] != f"Bearer {self.token}":
            return _status(401, "Unauthorized")
        if request.path in self.groups:
            return web.json_response({"resources": self.groups[request.path]})
        found = _PATH.fullmatch(request.path)
        if found is None:
            return _status(404, "the server could not find the requested resource")
        verb = _verb(request, found["name"])
        plural = f"{found['plural']}/{found['subresource']}" if found["subresource"] else found["plural"]
        self.requests[verb, plural] += 1
        if (verb, plural) in self.forbidden:
            return _status(403, f'{plural} is forbidden: User "system:serviceaccount:keda:scaler" cannot {verb} it')
        if answers := self.refuse.get((verb, plural)):
            status, body, headers = answers.pop(0)
            return web.json_response(body, status=status, headers=headers)
        collection = self._collection(Resource(found["group"] or "", "", found["plural"]))
        namespace, name = found["namespace"] or "", found["name"]
        match verb:
            case "list":
                return self._list(collection, namespace, request)
            case "watch":
                return await self._watch(collection, namespace, request)
            case "create":
                return await self._create(collection, namespace, await request.json())
            case "patch" if "fieldManager" in request.query:
                return await self._apply(collection, (namespace, name), await request.json())
        items = collection.scales if found["subresource"] == "scale" else collection.items
        if (namespace, name) not in items:
            return _status(404, f'{found["plural"]} "{name}" not found')
        item = items[namespace, name]
        if verb == "delete":
            await self.delete(Resource(found["group"] or "", "", found["plural"]), namespace, name)
        if verb == "update":
            body = await request.json()
            if body["metadata"].get("resourceVersion") != item["metadata"]["resourceVersion"]:
                return _status(409, "the object has been modified")
            return await self._replace(collection, body)
        if verb == "patch":
            patch = await request.json()
            if isinstance(patch, list):
                body = _operated(item, patch)
                if body is None:
                    return _status(422, "the server rejected our request due to an error in our request")
            else:
                body = _merged(item, patch)
            if found["subresource"] == "status":
                return await self._replace(collection, body)
            if found["subresource"]:
                items[namespace, name] = body
                return web.json_response(body)
            return await self._replace(collection, body)
        return web.json_response(item)

    async def _apply(self, collection: _Collection, key: Key, body: Json) -> web.Response:
        """What applies is one manager's: it makes the object, or its fields take the place of what was there."""
        now = {"creationTimestamp": "2026-01-31T12:00:00Z"}
        before = collection.items.get(key) or {"metadata": {**now, "uid": f"uid-{key[1]}"}}
        return await self._replace(collection, _merged(before, body))

    async def _create(self, collection: _Collection, namespace: str, item: Json) -> web.Response:
        item["metadata"]["namespace"] = namespace
        if (namespace, item["metadata"]["name"]) in collection.items:
            return _status(409, "already exists")
        return await self._replace(collection, item)

    async def _replace(self, collection: _Collection, item: Json) -> web.Response:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        collection.items[key] = item
        collection.changes.append(_Change(self._version, "MODIFIED", key, item))
        await self._tell()
        return web.json_response(item)

    def _list(self, collection: _Collection, namespace: str, request: web.Request) -> web.Response:
        here = [item for key, item in sorted(collection.items.items()) if namespace in ("", key[0])]
        start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", len(here) + 1))
        page = here[start : start + limit]
        more = {"continue": str(start + limit)} if start + limit < len(here) else {}
        return web.json_response({"metadata": {"resourceVersion": str(self._version), **more}, "items": page})

    async def _watch(self, collection: _Collection, namespace: str, request: web.Request) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        if version < self.oldest:
            return _status(410, "too old resource version")
        ends = asyncio.get_running_loop().time() + float(request.query["timeoutSeconds"])
        response = web.StreamResponse()
        await response.prepare(request)
        self._watches.add(response)
        position = next((i for i, c in enumerate(collection.changes) if c.version > version), len(collection.changes))
        while response in self._watches:
            for change in collection.changes[position:]:
                if not self.silent and namespace in ("", change.key[0]):
                    event = {"type": change.kind, "object": change.item}
                    await response.write(json.dumps(event).encode() + b"\n")
            position = len(collection.changes)
            left = ends - asyncio.get_running_loop().time()
            if left <= 0 and not self.silent:
                bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self._version)}}}
                await response.write(json.dumps(bookmark).encode() + b"\n")
                break
            async with self._changed:
                try:
                    async with asyncio.timeout(None if self.silent else left):
                        await self._changed.wait()
                except TimeoutError:
                    continue
        self._watches.discard(response)
        return response


def _verb(request: web.Request, name: str | None) -> str:
    if request.method == "GET":
        if name is not None:
            return "get"
        return "watch" if "watch" in request.query else "list"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


def _operated(item: Json, operations: list[Json]) -> Json | None:
    """Do the operations `test` and `add` of a JSON patch; None where a test fails. A change is a new generation."""
    result: Json = json.loads(json.dumps(item))
    for operation in operations:
        *path, last = operation["path"].removeprefix("/").split("/")
        place: Any = result
        for key in path:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if operation["op"] == "add":
            place[last] = operation["value"]
        elif place[last] != operation["value"]:
            return None
    result["metadata"]["generation"] = item["metadata"].get("generation", 0) + 1
    return result


def _merged(item: Json, patch: Json) -> Json:
    """Apply a JSON merge patch: null takes a value away."""
    result = dict(item)
    for key, value in patch.items():
        result[key] = _merged(result.get(key) or {}, value) if isinstance(value, dict) else value
    return {key: value for key, value in result.items() if key not in patch or value is not None}
