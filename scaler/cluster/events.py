"""Events on ScaledObjects and the like, for `kubectl describe`: said once, counted when repeated, never in a flood."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from typing import Literal

import structlog

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.errors import NOT_FOUND, ApiError
from scaler.cluster.model import ScaledObject
from scaler.cluster.resources import EVENTS
from scaler.cluster.times import micro_time

log = structlog.get_logger(__name__)

Severity = Literal["Normal", "Warning"]

CONTROLLER = "vllm-scaler"
SERIES_S = 600.0
"""The same event within this time of its last is counted, not said anew."""
FLUSH_S = 15.0
"""Between two updates of the counts."""
BURST = 10
REFILL_S = 60.0
"""An object may have `BURST` new events of each severity at once, and one more for each `REFILL_S` seconds: counts that
change all the time leave warnings their room."""
_WAITING = 1000
"""Events that wait for the API server; what comes beyond that is dropped."""
_NOTE_LENGTH = 1024  # the API's own limit

_Identity = tuple[str, Severity, str, str]
"""The object's uid, severity, reason and note."""


@dataclass(frozen=True, slots=True)
class Involved:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class _Series:
    """One event that was said, and how often since."""

    namespace: str
    name: str
    last: float
    """Unix time of the last occurrence."""
    count: int = 1
    reported: int = 0
    """The count that the API server knows; 0 until the event is written."""


@dataclass(slots=True)
class _Budget:
    """How many new events of one severity an object may still have."""

    left: float
    at: float

    def take(self, now: float) -> bool:
        self.left = min(float(BURST), self.left + (now - self.at) / REFILL_S)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class EventRecorder:
    """Says events about objects. `say` never waits; `run` carries them to the API server.

    An event is a help, not a duty: what cannot be written is logged and let go.
    """

    def __init__(self, client: ApiClient, instance: str) -> None:
        """`instance` names this process, say its pod."""
        self._client = client
        self._instance = instance
        self._series: dict[_Identity, _Series] = {}
        self._budgets: dict[tuple[str, Severity], _Budget] = {}
        self._queue: asyncio.Queue[tuple[_Identity, Involved, float]] = asyncio.Queue(_WAITING)
        self._error = ""

    def say(self, about: ScaledObject | Involved, reason: str, note: str, severity: Severity = "Normal") -> None:
        """Have `note` shown on an object; `reason` is one CamelCase word."""
        now = time.time()
        if isinstance(about, ScaledObject):
            about = Involved("keda.sh/v1alpha1", "ScaledObject", about.namespace, about.name, about.uid)
        identity = (about.uid, severity, reason, note[:_NOTE_LENGTH])
        series = self._series.get(identity)
        if series is not None and now - series.last < SERIES_S:
            series.last = now
            series.count += 1
            return
        budget = self._budgets.setdefault((about.uid, severity), _Budget(float(BURST), now))
        if not budget.take(now):
            return
        if self._queue.full():
            log.warning("event dropped: too many wait", reason=reason)
            return
        self._series[identity] = _Series(about.namespace, f"{about.name[:200]}.{secrets.token_hex(8)}", now)
        self._queue.put_nowait((identity, about, now))

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write())
            group.create_task(self._count())

    async def _write(self) -> None:
        while True:
            identity, about, at = await self._queue.get()
            if (series := self._series.get(identity)) is not None:
                await self._try_to_create(identity, series, about, at)

    async def _try_to_create(self, identity: _Identity, series: _Series, about: Involved, at: float) -> None:
        try:
            await self._client.create(EVENTS, about.namespace, self._body(identity, series, about, at))
            series.reported = 1
        except ApiError as error:
            self._series.pop(identity, None)
            self._complain(error)

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Write the counts that have changed, and forget series and budgets that have ended."""
        now = time.time()
        for identity, series in list(self._series.items()):
            if 0 < series.reported < series.count:
                await self._update(identity, series)
            elif now - series.last > SERIES_S:
                del self._series[identity]
        full = BURST * REFILL_S
        self._budgets = {whose: budget for whose, budget in self._budgets.items() if now - budget.at < full}

    async def _update(self, identity: _Identity, series: _Series) -> None:
        count = series.count
        body: Json = {"series": {"count": count, "lastObservedTime": micro_time(series.last)}}
        try:
            await self._client.patch(EVENTS, series.namespace, series.name, body)
            series.reported = count
        except ApiError as error:
            if error.status == NOT_FOUND:  # the cluster has dropped it for its age: say it anew when it comes again
                self._series.pop(identity, None)
            else:
                self._complain(error)

    def _complain(self, error: ApiError) -> None:
        if str(error) != self._error:
            log.warning("event not written", error=str(error))
        self._error = str(error)

    def _body(self, identity: _Identity, series: _Series, about: Involved, at: float) -> Json:
        _, severity, reason, note = identity
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": about.namespace},
            "eventTime": micro_time(at),
            "type": severity,
            "reason": reason,
            "action": "Scale",
            "note": note,
            "regarding": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
        }
