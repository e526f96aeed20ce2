"""When each Deployment of a namespace was asked for how many replicas, and had how many ready ones."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from tests.cluster.control_plane import ControlPlane
from tests.cluster.pod_watch import watch
from tests.cluster.role import PATHS


@dataclass(frozen=True, slots=True)
class Count:
    """What a Deployment was from a moment on."""

    at: float
    """Seconds, `time.monotonic`: when the watch told it."""
    requested: int
    ready: int


class Counts:
    """Follows the Deployments by one watch, as long as the `with` block lasts."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace
        self._counts: dict[str, list[Count]] = defaultdict(list)
        self._thread = threading.Thread(target=self._run, name="counts", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._watching = self._loop.create_task(self._watch())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._watching.cancel)
        self._thread.join()

    def since(self, name: str, moment: float) -> list[Count]:
        """What the Deployment became after a moment, oldest first."""
        return [count for count in list(self._counts[name]) if count.at >= moment]

    def latest(self, name: str) -> Count | None:
        """What it is now; None before it was seen."""
        counts = self._counts[name]
        return counts[-1] if counts else None

    def _run(self) -> None:
        self._loop.run_until_complete(asyncio.gather(self._watching, return_exceptions=True))
        self._loop.close()

    async def _watch(self) -> None:
        async for objects in watch(self._plane, PATHS["Deployment"].format(self._namespace), {}):
            now = time.monotonic()
            for found in objects.values():
                self._note(found["metadata"]["name"], found["spec"]["replicas"], found["status"], now)

    def _note(self, name: str, requested: int, status: dict[str, int], now: float) -> None:
        count = Count(now, requested, status.get("readyReplicas", 0))
        latest = self.latest(name)
        if latest is None or (latest.requested, latest.ready) != (count.requested, count.ready):
            self._counts[name].append(count)
