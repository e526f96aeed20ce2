"""The list of all targets as a stream: everything at first, then only the fields that changed.

One loop looks at the targets for all browsers together, and only while there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from scaler.serving import views
from scaler.serving.page.events import event
from scaler.serving.views import View
from scaler.targets import Targets

EVERY_S = 1.0
_SLICE = 50
"""Targets that are looked at in one go, so that ticks and calls never wait for the page."""


@dataclass(slots=True)
class _Row:
    values: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    """Field → the version in which it changed last."""
    version: int = 0
    """The newest of them."""


class Overview:
    """What browsers were told of each target, with versions: each gets what changed since the one that it has."""

    def __init__(self, targets: Targets, head: Callable[[], View]) -> None:
        """`head` makes what stands at the top of every message."""
        self._targets = targets
        self._head = head
        self._rows: dict[str, _Row] = {}
        self._version = 0
        self._first_version = 0
        """The first of the running loop; what was known before is out of date."""
        self._order_version = 0
        """In which targets came or went last."""
        self._looked = asyncio.Event()
        self._watchers = 0
        self._loop: asyncio.Task[None] | None = None
        self._encoded: tuple[int, dict[int, bytes]] = (0, {})
        """A version, and the messages that lead to it, by the version that they start from."""

    async def stream(self) -> AsyncIterator[bytes]:
        """Give messages for one browser, one each second: they tell that the line stands, too."""
        self._watchers += 1
        if self._loop is None or self._loop.done():
            self._first_version = self._version + 1
            self._loop = asyncio.create_task(self._keep_looking(), name="page overview")
        try:
            seen = 0
            while True:
                while self._version < self._first_version or self._version == seen:
                    await self._looked.wait()
                message, seen = self._since(seen), self._version
                yield message
        finally:
            self._watchers -= 1
            if self._watchers == 0 and self._loop is not None:
                self._loop.cancel()
                self._loop = None

    async def _keep_looking(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(EVERY_S)

    async def _look(self) -> None:
        """Compare every target with what was told of it."""
        version = self._version + 1
        found: set[str] = set()
        for i, target in enumerate(list(self._targets), start=1):
            found.add(self._take(views.summary(target), version))
            if i % _SLICE == 0:
                await asyncio.sleep(0)
        for trigger in self._targets.invalid:
            found.add(self._take(views.invalid(trigger), version))
        for key in self._rows.keys() - found:
            del self._rows[key]
            self._order_version = version
        self._version = version
        self._looked.set()
        self._looked = asyncio.Event()

    def _take(self, view: View, version: int) -> str:
        """Note what changed in a target's line; returns its key."""
        key = "/".join((view["namespace"], view["name"], view["trigger"]))
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row()
            self._order_version = version
        for name, value in view.items():
            if name not in row.values or row.values[name] != value:
                row.values[name] = value
                row.changed[name] = row.version = version
        return key

    def _since(self, seen: int) -> bytes:
        version, encoded = self._encoded
        if version != self._version:
            self._encoded = version, encoded = self._version, {}
        if seen not in encoded:
            encoded[seen] = event("targets", self._message(seen))
        return encoded[seen]

    def _message(self, seen: int) -> View:
        rows = {
            key: {name: row.values[name] for name, version in row.changed.items() if version > seen}
            for key, row in self._rows.items()
            if row.version > seen
        }
        message: View = {**self._head(), "rows": rows}
        if self._order_version > seen:
            message["keys"] = sorted(self._rows)
        return message
