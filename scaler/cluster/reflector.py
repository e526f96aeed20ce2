"""One collection of the API in memory: listed once, then kept true by a watch, whatever happens to the watch."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.errors import EXPIRED, NOT_FOUND, ApiError, WatchSilent
from scaler.cluster.resources import Resource

log = structlog.get_logger(__name__)

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace and name."""

_REFUSED = frozenset({401, 403, NOT_FOUND})
"""Statuses that stay until somebody changes the cluster: no rights, or no such resource."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How a reflector treats the API server. Seconds, but for `page`."""

    page: int = 500
    """Objects in one answer of a list."""
    watch_s: float = 10.0
    """The server ends a watch after this time, and shortly before it sends a bookmark. With the grace below it is the
    usual `staleness`: nothing is decided for longer on what a dead watch showed."""
    idle_grace_s: float = 5.0
    """A watch that says nothing for this much longer than `watch_s` is taken for dead."""
    back_off_s: float = 0.25
    """The first wait after a failure; it doubles up to the maximum. Each is shortened by up to half, at random."""
    back_off_max_s: float = 5.0
    refused_s: float = 15.0
    """The wait after a refusal."""
    asked_max_s: float = 60.0
    """The longest wait that the API server may ask for."""


class Reflector(Generic[T]):
    """The objects of `resource` in one namespace (or all: ""), as `parse` keeps them; only those that the selector
    `labels` picks, where there is one.

    `parse` gets an object and what was kept of it before; it returns what to keep, or None to forget the object.
    `on_change` is told of every difference: key, before, after (None: not there).
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        parse: Callable[[Json, T | None], T | None],
        *,
        namespace: str = "",
        labels: str = "",
        on_change: Callable[[Key, T | None, T | None], None] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.items: dict[Key, T] = {}
        self.synced = asyncio.Event()
        """Set once all objects have been seen."""
        self.settled = asyncio.Event()
        """Set once all objects have been seen or the API server has refused to show them."""
        self.error = ""
        """Why the view is not kept up just now; empty while it is."""
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selection = {"labelSelector": labels} if labels else {}
        self._parse = parse
        self._on_change = on_change
        self._timing = timing or Timing()
        self._version: str | None = None
        """Where the next watch goes on; None lists anew."""
        self._standing = False
        self._seen_at = float("-inf")
        self._failures = 0
        self._limit: asyncio.Timeout | None = None

    def alive_until(self) -> float:
        """Return the monotonic time until which the view is known to be right: now, while the watch stands."""
        return time.monotonic() if self._standing else self._seen_at

    def relist(self) -> None:
        """List anew at once: for a watch that seems to miss something, or that waits after a failure."""
        self._version = None
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    def clear(self) -> None:
        """Forget everything, telling `on_change`."""
        for key in list(self.items):
            self._keep(key, None)

    async def run(self) -> None:
        """Keep the view up until cancelled."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._watch()
            except ApiError as error:
                await self._pause(error)
            except Exception as error:  # a fault in one collection must not end all others
                log.exception("watch failed", resource=str(self._resource), namespace=self._namespace)
                self._version = None
                await self._pause(ApiError(f"{type(error).__name__}: {error}"))

    async def _list(self) -> None:
        began = time.monotonic()
        found: dict[Key, T] = {}
        parameters = {"limit": str(self._timing.page), **self._selection}
        while True:
            page = await self._client.list(self._resource, self._namespace, **parameters)
            for item in page["items"] or ():
                key = _key(item)
                if (kept := self._parsed(key, item)) is not None:
                    found[key] = kept
            if not (token := page["metadata"].get("continue")):
                break
            parameters["continue"] = token
        for key in self.items.keys() - found.keys():
            self._keep(key, None)
        for key, kept in found.items():
            self._keep(key, kept)
        self._version, self._seen_at = page["metadata"]["resourceVersion"], began
        self.synced.set()
        self.settled.set()

    async def _watch(self) -> None:
        timing, began, heard = self._timing, time.monotonic(), False
        events = self._client.watch(
            self._resource,
            self._namespace,
            # Spread, so that the watches of a process do not all end in the same moment.
            timeout_s=timing.watch_s * random.uniform(0.8, 1.0),
            idle_s=timing.watch_s + timing.idle_grace_s,
            resourceVersion=self._version or "",
            **self._selection,
        )
        ended = False
        try:
            async with self._interruptible(None), aclosing(events):
                async for event in events:
                    self._standing, self.error = True, ""
                    if event["type"] != "OPEN":
                        heard = True
                        self._failures, self._seen_at = 0, time.monotonic()
                        self._apply(event)
                ended = True
        except WatchSilent:
            self._version = None  # only a list proves that the server still tells the truth
            raise
        except ApiError:
            if self._standing:
                self._seen_at = time.monotonic()
            raise
        finally:
            self._standing = False
        self._seen_at = time.monotonic()
        if not ended:  # relist() was called
            self._version = None
        elif not heard and self._seen_at - began < min(1.0, timing.watch_s / 2):
            raise ApiError(f"the API server ends every watch of {self._resource} at once")

    def _apply(self, event: Json) -> None:
        item = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._keep(_key(item), self._parsed(_key(item), item))
            case "DELETED":
                self._keep(_key(item), None)
            case "ERROR":
                message = f"the watch of {self._resource} ended: {item.get('message')}"
                raise ApiError(message, item.get("code") or 0)
        self._version = item["metadata"]["resourceVersion"]

    def _parsed(self, key: Key, item: Json) -> T | None:
        before = self.items.get(key)
        try:
            return self._parse(item, before)
        except Exception:  # one odd object must not hide all others
            log.exception("odd object", resource=str(self._resource), namespace=key[0], name=key[1])
            return before

    def _keep(self, key: Key, after: T | None) -> None:
        before = self.items.get(key)
        if after == before:
            return
        if after is None:
            del self.items[key]
        else:
            self.items[key] = after
        if self._on_change is not None:
            self._on_change(key, before, after)

    async def _pause(self, error: ApiError) -> None:
        """Wait after a failure: longer after each, and as long as the server asks for."""
        # A version that the server does not know, be it too old or, after a restored backup, too new.
        if error.status == EXPIRED or "Too large resource version" in str(error):
            self._version = None
        elif str(error) != self.error and (self._failures or error.status or not self.synced.is_set()):
            # Of a view that stood, one broken connection is no news.
            log.warning("the cluster is not seen", error=str(error))
        self.error = str(error)
        timing = self._timing
        delay = min(timing.back_off_max_s, timing.back_off_s * 2.0 ** min(self._failures, 16))
        if error.status in _REFUSED:
            self.settled.set()
            delay = timing.refused_s
        self._failures += 1
        delay = max(delay * random.uniform(0.5, 1.0), min(error.retry_after_s, timing.asked_max_s))
        async with self._interruptible(delay):
            await asyncio.Event().wait()

    @asynccontextmanager
    async def _interruptible(self, seconds: float | None) -> AsyncIterator[None]:
        """Let `relist`, or the time, end what is done inside."""
        with suppress(TimeoutError):
            try:
                async with asyncio.timeout(seconds) as self._limit:
                    yield
            finally:
                self._limit = None


def _key(item: Json) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
