"""A KEDA that does not ask: a fault of the set-up that nothing else shows, since no call arrives that could fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

import structlog

from scaler.cluster.model import ScaledObject
from scaler.targets import Target, Targets

log = structlog.get_logger(__name__)

GRACE_S = 60.0
"""How much longer than KEDA's polling interval a silence may last. KEDA asks once in that interval, and while there are
replicas the HPA does every 15 s; after a failure it waits for up to a minute before it opens a stream again."""
LOOK_S = 5.0
HINT = (
    "nothing is scaled by it. Often TLS is on at one side only, scalerAddress names another Service or port, or a "
    "NetworkPolicy is in the way: the log of keda-operator says which"
)


class Silence:
    """Puts a warning on every target that KEDA should ask for and does not, while this replica is the one to ask."""

    def __init__(self, targets: Targets, leads: Callable[[], bool]) -> None:
        self._targets = targets
        self._leads = leads
        self._polling_s: dict[tuple[str, str], float] = {}
        """The polling intervals of the ScaledObjects that name this scaler and are not paused."""
        self._listening_since: WeakKeyDictionary[Target, float] = WeakKeyDictionary()

    def show(self, scaled_objects: Iterable[ScaledObject]) -> None:
        """Take in the ScaledObjects that name this scaler, all of them."""
        self._polling_s = {
            (shown.namespace, shown.name): shown.polling_s for shown in scaled_objects if not shown.paused
        }

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Warn where a silence has become too long, and take the warning back where it has ended."""
        for target in self._targets:
            self._look_at(target)

    def _look_at(self, target: Target) -> None:
        polling_s = self._polling_s.get((target.namespace, target.name))
        if polling_s is None or not self._leads():
            self._listening_since.pop(target, None)
            target.unasked = ""
            return
        clock = self._targets.world.clock
        now = clock.monotonic()
        since = max(target.asking.last, self._listening_since.setdefault(target, now))
        if now - since <= polling_s + GRACE_S:
            if target.unasked:
                log.info("KEDA asks again", target=str(target), trigger=target.trigger)
            target.unasked = ""
        elif not target.unasked:
            what = "has not asked" if target.asking.ever else "has never asked"
            moment = time.strftime("%H:%M:%S UTC", time.gmtime(clock.utc() - (now - since)))
            target.unasked = f"KEDA {what} for this trigger since {moment}: {HINT}"
            log.warning("KEDA does not ask", target=str(target), trigger=target.trigger, why=target.unasked)
