"""A fleet of simulated pods behind a router, in simulated time: no clock and no sockets.

A pod starts for a while, serves, drains when it is told to go, and is gone. The router sends each request of the
traffic, at the moment at which it arrives, to that one of two ready pods taken by chance which has fewer requests in
it, as Envoy's least-request balancer and Ray Serve's router do; a share of them, where so asked, to any ready pod.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from inference.simulated.engine import Engine, Finished
from inference.simulated.profile import TIME_BOUND, Profile
from inference.simulated.request import Request

_CHOICES = 2
"""Pods that the router looks at for a request. With all of them, a pod that has just started would get every request
until it is as full as the others, faster than it can compute their prompts."""


class PodState(StrEnum):
    """Where a pod is in its life."""

    STARTING = "starting"
    READY = "ready"
    TERMINATING = "terminating"
    """It takes no new requests and finishes those that it has."""
    GONE = "gone"


class Verdict(StrEnum):
    """What became of a request."""

    SERVED = "served"
    REFUSED = "refused"
    """No pod was ready, or it was longer than the model takes."""
    LOST = "lost"
    """Its pod went before it was finished."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one request."""

    request: Request
    verdict: Verdict
    time: float
    """When it ended."""
    pod: str | None = None
    """None where no pod took it."""
    finished: Finished | None = None
    """What the engine measured, where it was served."""


class Pod:
    """One replica. Made by `Fleet.add`."""

    def __init__(self, name: str, engine: Engine, created: float, ready: float) -> None:
        self.name = name
        self.engine = engine
        self.created = created
        self.ready = ready
        """When its start-up ends."""
        self.deadline = math.inf
        """When it is killed, finished or not; infinite until it is told to go."""
        self.state = PodState.STARTING


class Fleet:
    """Pods, a router, and the traffic that it routes.

    Every method that is told the time plays the fleet up to it; the time never goes back.
    """

    def __init__(
        self,
        traffic: Iterable[Request] = (),
        *,
        profile: Profile = TIME_BOUND,
        start_up_s: float = 0.0,
        grace_s: float = 120.0,
        blind_share: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.profile = profile
        self.start_up_s = start_up_s
        """From the creation of a pod to its being ready, unless `add` is told another time."""
        self.grace_s = grace_s
        """The longest that a pod may drain."""
        self.blind_share = blind_share
        """Share of the requests that go to any ready pod, however full: sessions, or a router that knows too little."""
        self.now = 0.0
        self._traffic = iter(traffic)
        self._next = self._draw()
        self._pods: dict[str, Pod] = {}
        self._made = 0
        self._seed = seed
        self._chance = random.Random(seed)
        self._outcomes: list[Outcome] = []

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that are not gone, by name, oldest first."""
        return self._pods

    def count(self, state: PodState) -> int:
        """How many pods are in a state."""
        return sum(pod.state is state for pod in self._pods.values())

    @property
    def outstanding(self) -> int:
        """Requests inside engines."""
        return sum(pod.engine.outstanding for pod in self._pods.values())

    @property
    def idle(self) -> bool:
        """Whether the traffic has ended and nothing of it is left in an engine."""
        return self._next is None and self.outstanding == 0

    def add(
        self,
        now: float,
        *,
        name: str | None = None,
        profile: Profile | None = None,
        start_up_s: float | None = None,
    ) -> Pod:
        """Create a pod. Raises ValueError for a name that is taken."""
        self._play(now)
        name = name or f"pod-{self._made}"
        if name in self._pods:
            raise ValueError(f"a pod {name!r} is there already")
        start_up_s = self.start_up_s if start_up_s is None else start_up_s
        engine = Engine(profile or self.profile, seed=self._seed * 100_003 + self._made)
        pod = self._pods[name] = Pod(name, engine, now, now + start_up_s)
        self._made += 1
        self._settle(pod)
        return pod

    def drain(self, name: str, now: float, *, grace_s: float | None = None) -> None:
        """Tell a pod to go: it takes no more requests, finishes its own, and is killed after `grace_s`."""
        self._play(now)
        pod = self._pods[name]
        if pod.state is not PodState.TERMINATING:
            pod.state = PodState.TERMINATING
            pod.deadline = now + (self.grace_s if grace_s is None else grace_s)
            self._settle(pod)

    def kill(self, name: str, now: float) -> None:
        """End a pod at once, as a crash does."""
        self._play(now)
        self._end(self._pods[name])

    def send(self, request: Request, now: float) -> None:
        """Route a request that no traffic foresaw; what becomes of it is told by `advance`."""
        self._play(now)
        self._route(request)

    def scale(self, replicas: int, now: float) -> None:
        """Add pods, or drain some as a ReplicaSet does: those that start before those that serve, newest first."""
        if replicas < 0:
            raise ValueError(f"replicas is {replicas}; it must be at least 0")
        self._play(now)
        staying = [pod for pod in self._pods.values() if pod.state is not PodState.TERMINATING]
        for _ in range(replicas - len(staying)):
            self.add(now)
        newest_first = staying[::-1]
        newest_first.sort(key=lambda pod: pod.state is not PodState.STARTING)
        for pod in newest_first[: max(0, len(staying) - replicas)]:
            self.drain(pod.name, now)

    def advance(self, until: float) -> list[Outcome]:
        """Play up to a time; the requests that ended since the last call."""
        self._play(until)
        while self._next is not None and self._next.arrival_s <= until:
            self._route_next()
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def _play(self, until: float) -> None:
        """Play up to a time, without the requests of that very moment: what is done to pods comes first."""
        if until < self.now:
            raise ValueError(f"time {until} has passed; this fleet is at {self.now}")
        while self._next is not None and self._next.arrival_s < until:
            self._play_pods(self._next.arrival_s)
            self._route_next()
        self._play_pods(until)

    def _play_pods(self, until: float) -> None:
        self.now = until
        for pod in list(self._pods.values()):
            for event in pod.engine.advance(min(until, pod.deadline)):
                if isinstance(event, Finished):
                    self._outcomes.append(Outcome(event.request, Verdict.SERVED, event.time, pod.name, event))
            self._settle(pod)

    def _settle(self, pod: Pod) -> None:
        """Move a pod on to the state that the time has brought."""
        if pod.state is PodState.STARTING and pod.ready <= self.now:
            pod.state = PodState.READY
        elif pod.state is PodState.TERMINATING and (pod.engine.outstanding == 0 or pod.deadline <= self.now):
            self._end(pod)

    def _end(self, pod: Pod) -> None:
        pod.state = PodState.GONE
        del self._pods[pod.name]
        time = min(self.now, pod.deadline)
        self._outcomes += [Outcome(request, Verdict.LOST, time, pod.name) for request in pod.engine.abort()]

    def _draw(self) -> Request | None:
        """The next request of the traffic."""
        request = next(self._traffic, None)
        if request is not None and request.arrival_s < self.now:
            raise ValueError(f"traffic out of order: a request of arrival_s {request.arrival_s} comes after {self.now}")
        return request

    def _route_next(self) -> None:
        request = self._next
        if request is not None:
            self._next = self._draw()
            self._route(request)

    def _route(self, request: Request) -> None:
        ready = [pod for pod in self._pods.values() if pod.state is PodState.READY]
        if not ready:
            self._outcomes.append(Outcome(request, Verdict.REFUSED, self.now))
            return
        if self.blind_share and self._chance.random() < self.blind_share:
            pod = self._chance.choice(ready)
        else:
            few = self._chance.sample(ready, _CHOICES) if len(ready) > _CHOICES else ready
            pod = min(few, key=lambda pod: pod.engine.outstanding)
        try:
            pod.engine.submit(request, self.now)
        except ValueError:
            self._outcomes.append(Outcome(request, Verdict.REFUSED, self.now, pod.name))
