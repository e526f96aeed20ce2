"""Leader election by a Lease: at most one process leads, however the API server or the process is held up."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.errors import CONFLICT, NOT_FOUND, ApiError
from scaler.cluster.resources import LEASES
from scaler.cluster.times import micro_time

log = structlog.get_logger(__name__)

_RELEASE_S = 3.0


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds, as Kubernetes' own components have them."""

    lease: float = 15.0
    """Others take a lease over when nobody has renewed it for this long."""
    renew_deadline: float = 10.0
    """The leader steps down when it could not renew for this long: well before others take over."""
    retry: float = 2.0
    """Between two tries of the leader to renew; each wait is lengthened by up to a fifth, at random."""
    look: float = 0.5
    """The same between two looks of the others: so soon they notice that the leader has given the lease back."""

    def __post_init__(self) -> None:
        if not self.retry * 1.2 < self.renew_deadline < self.lease:
            raise ValueError(f"{self} is wrong; right is retry × 1.2 < renew_deadline < lease")


class Election:
    """A candidate for a Lease. `run` competes until cancelled; `is_leader` may be asked at any time.

    Only the monotonic clock counts, so that a clock that jumps makes no second leader, and others' times are not
    compared with ours: a lease has expired when it has not changed for its duration while we looked.
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        on_started: Callable[[], None] | None = None,
        on_stopped: Callable[[], None] | None = None,
        durations: Durations | None = None,
    ) -> None:
        """`identity` must be this process's alone: two candidates of one name would both think that they lead."""
        self.holder = ""
        """Who held the lease when it was last seen; empty for nobody."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._on_started = on_started
        self._on_stopped = on_stopped
        self._durations = durations or Durations()
        self._leading = False
        self._leads_until = float("-inf")
        self._lease: Json = {}
        self._unchanged_since = float("-inf")
        """When the lease was first seen as it is (monotonic)."""
        self._error = ""

    @property
    def is_leader(self) -> bool:
        """Whether this process leads. It asks the clock, so it is right even just after the process was held up."""
        return self._leading and time.monotonic() < self._leads_until

    async def run(self) -> None:
        """Compete until cancelled; then step down and give the lease back, for another to lead at once."""
        try:
            while True:
                await self._try()
                longer = random.uniform(1.0, 1.2)
                if self._leading:
                    pause = min(self._durations.retry * longer, self._leads_until - time.monotonic())
                else:
                    pause = self._durations.look * longer
                await asyncio.sleep(max(0.0, pause))
        finally:
            led = self.is_leader
            self._step_down("this process ends")
            if led:
                await self._release()

    async def _try(self) -> None:
        """Renew or acquire, once; step down when the time to renew is over."""
        # What is written is good from before it was sent: others see it later, and so wait longer.
        began = time.monotonic()
        if self._leading and began >= self._leads_until:
            self._step_down(f"the lease could not be renewed for {self._durations.renew_deadline:g}s: {self._error}")
        try:
            async with asyncio.timeout(self._leads_until - began if self._leading else self._durations.renew_deadline):
                held = await self._acquire()
        except TimeoutError:
            self._complain("the API server did not answer in time")
            return
        except ApiError as error:
            if error.status != CONFLICT:  # that is another candidate who was faster: the next look will show it
                self._complain(str(error))
            return
        self._error = ""
        if held:
            self._leads_until = began + self._durations.renew_deadline
            self._step_up()
        else:
            self._step_down(f"{self.holder} holds the lease")

    async def _acquire(self) -> bool:
        """Write our name into the lease if it is ours, free or expired. Raises ApiError."""
        try:
            lease = await self._client.get(LEASES, self._namespace, self._name)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            body = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": self._spec({})}
            self._note(await self._client.create(LEASES, self._namespace, body))
            return True
        self._note(lease)
        spec = lease.get("spec") or {}
        duration = float(spec.get("leaseDurationSeconds") or self._durations.lease)
        if self.holder not in {"", self._identity} and time.monotonic() < self._unchanged_since + duration:
            return False
        await self._write(self._spec(spec))
        return True

    async def _release(self) -> None:
        spec = self._lease["spec"] | {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": micro_time(time.time()),
        }
        try:
            async with asyncio.timeout(_RELEASE_S):
                await self._write(spec)
        except (ApiError, TimeoutError) as error:
            log.warning("lease not given back: others wait until it expires", lease=self._name, error=str(error))

    async def _write(self, spec: Json) -> None:
        """Put a spec in place of the one last seen. Raises ApiError, with 409 when that is no longer there."""
        self._note(await self._client.replace(LEASES, self._namespace, self._name, self._lease | {"spec": spec}))

    def _spec(self, before: Json) -> Json:
        now = micro_time(time.time())
        ours = before.get("holderIdentity") == self._identity
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._durations.lease),
            "acquireTime": before.get("acquireTime", now) if ours else now,
            "renewTime": now,
            "leaseTransitions": (before.get("leaseTransitions") or 0) + (not ours),
        }

    def _note(self, lease: Json) -> None:
        if lease["metadata"]["resourceVersion"] != self._lease.get("metadata", {}).get("resourceVersion"):
            self._unchanged_since = time.monotonic()
        self._lease = lease
        self.holder = (lease.get("spec") or {}).get("holderIdentity") or ""

    def _step_up(self) -> None:
        if self._leading:
            return
        self._leading = True
        log.info("leading", lease=self._name, identity=self._identity)
        if self._on_started is not None:
            self._on_started()

    def _step_down(self, reason: str) -> None:
        if not self._leading:
            return
        self._leading = False
        log.info("no longer leading", lease=self._name, identity=self._identity, reason=reason)
        if self._on_stopped is not None:
            self._on_stopped()

    def _complain(self, error: str) -> None:
        if error != self._error:
            log.warning("lease not renewed" if self._leading else "lease not seen", lease=self._name, error=error)
        self._error = error
