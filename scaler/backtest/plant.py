"""The plant: traffic, pods, HPA and KEDA in simulated time, moved by one contender.

`Plant.play` is a whole run. What takes time in a cluster takes it here: a scrape, a sync of the HPA, KEDA's poll and
cool-down, a node, a start, a drain. Phases of slow loops and the luck of pods are drawn from the seed, the same for
every contender.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from inference.simulated import MEMORY_BOUND, Fleet, Outcome, PodState, Profile, Request, Verdict
from scaler.backtest.contender import Contender, Gateway, Maker, Seen, SeenPod, Setup, Want
from scaler.backtest.deployment import Deployment, PodLuck, Replica
from scaler.backtest.nodes import NodePool, Nodes
from scaler.backtest.sight import Reader, Sight
from scaler.cluster.model import Phase, Pod
from scaler.exposition.sample import Sample
from scaler.policy import Limits, Observation, Replicas
from scaler.sources.source import Unknown
from scaler.targets.load import LoadMeter
from scaler.targets.start_up import StartUpMeter

POLLING_S = 30.0
"""KEDA's `pollingInterval`: how often it asks a trigger that does not push whether there is something to do."""
COOLDOWN_S = 300.0
"""KEDA's `cooldownPeriod`: how long nothing must be to do before the last replica goes."""
MOMENT_S = 5.0
"""Time between two moments of a run's record."""
_SETTLE_S = 1.0
_LAST_S = 1800.0
"""How long the requests that are still there at the end may take to finish."""
_SUNDAY_MIDNIGHT = 1_796_515_200.0
"""Unix time of a run's beginning, for schedules."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a dashboard would have shown."""

    time: float
    arrivals: int
    """Requests that arrived since the moment before."""
    waiting: int
    """In engines and in the gateway."""
    running: int
    requested: int
    pending: int
    starting: int
    ready: int
    terminating: int


@dataclass(frozen=True, slots=True)
class Change:
    """One move of `spec.replicas`."""

    time: float
    before: int
    after: int
    by: str
    """`HPA`, `KEDA` or `direct`."""
    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that one run left behind."""

    duration_s: float
    outcomes: Sequence[Outcome]
    """One for every request, in the order in which they ended."""
    moments: Sequence[Moment]
    changes: Sequence[Change]
    replicas: Sequence[Replica]
    node_hours: float | None = None
    """What nodes were paid for, idle ones too; None where there is no pool of them."""


@dataclass(frozen=True, slots=True)
class Plant:
    """The cluster of a run, and what is promised to clients."""

    minimum: int = 1
    maximum: int = 16
    initial: int | None = None
    """Replicas that are ready at the beginning; None: the minimum."""
    luck: PodLuck = field(default_factory=lambda: PodLuck(60.0))
    nodes: NodePool | None = None
    """None: every pod finds room at once."""
    profile: Profile = MEMORY_BOUND
    grace_s: float = 120.0
    """The longest that a pod may drain."""
    sight: Sight = field(default_factory=Sight)
    """How well pods can be read."""
    blind_share: float = 0.0
    """Share of the requests that the router sends to any ready pod, however full it is."""
    deploy: float | None = None
    """Share of the run after which a rolling update replaces all pods; None: there is none."""
    ttft_slo_s: float = 3.0
    tpot_slo_s: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.maximum or self.maximum < 1:
            raise ValueError(
                f"minimum {self.minimum} and maximum {self.maximum} are no limits; right is 0 ≤ minimum ≤ maximum ≥ 1"
            )
        if self.initial is not None and not 0 <= self.initial <= self.maximum:
            raise ValueError(
                f"{self.initial} replicas at the beginning are wrong with a maximum of {self.maximum}; right are 0 to "
                f"{self.maximum}"
            )

    def setup(self, requests: Sequence[Request]) -> Setup:
        """Return what an autoscaler's owner knows of this plant and traffic."""
        return Setup(
            minimum=self.minimum,
            maximum=self.maximum,
            start_up_s=self.luck.start_up_s + (self.nodes.node_s if self.nodes else 0.0),
            profile=self.profile,
            ttft_slo_s=self.ttft_slo_s,
            tpot_slo_s=self.tpot_slo_s,
            requests=requests,
        )

    def play(self, requests: Sequence[Request], duration_s: float, maker: Maker, *, seed: int = 0) -> Run:
        """Play traffic for `duration_s` under a new contender; then let the requests that are left finish.

        `requests` are in order of arrival. The same arguments give the same run.
        """

        def rehearse(maker: Maker) -> Sequence[Outcome]:
            return self.play(requests, duration_s, maker, seed=seed).outcomes

        setup = replace(self.setup(requests), rehearse=rehearse)
        return _Game(self, requests, maker(setup), seed).play(duration_s)


class _Game:
    """One run while it goes on."""

    def __init__(self, plant: Plant, requests: Sequence[Request], contender: Contender, seed: int) -> None:
        chance = random.Random(seed)
        self._plant = plant
        self._contender = contender
        self._fleet = Fleet(profile=plant.profile, grace_s=plant.grace_s, blind_share=plant.blind_share, seed=seed)
        self._nodes = Nodes(plant.nodes, random.Random(seed))
        self._deployment = Deployment(self._fleet, self._nodes, plant.luck, seed=seed)
        self._hpa = contender.hpa(max(1, plant.minimum), plant.maximum)  # KEDA's HPA never has a minimum of 0
        self._limits = Limits(plant.minimum, plant.maximum, self._hpa.up.tolerance, self._hpa.down.tolerance)
        self._phase = chance.random
        self._now = 0.0

        # Traffic, and the requests that the gateway holds while no pod is ready.
        self._arriving = iter(requests)
        self._next = next(self._arriving, None)
        self._held: deque[Request] = deque()
        self._arrived = Gateway()
        self._outcomes: list[Outcome] = []

        # What the contender sees and says.
        self._meter = LoadMeter(contender.look_back_s)
        self._start_up = StartUpMeter()
        self._started: set[str] = set()
        self._reader = Reader(plant.sight, seed)
        self._samples: dict[str, Sample | Unknown] = {}
        self._gateway = Gateway()
        self._load = self._meter.measure(0.0, {})
        self._scraped = 0.0
        self._want: Want | None = None
        self._active_at = 0.0

        self._moments: list[Moment] = []
        self._arrivals_before = 0
        self._changes: list[Change] = []
        self._agenda: list[tuple[float, int, float, Callable[[], None]]] = []

    def play(self, duration_s: float) -> Run:
        plant, contender = self._plant, self._contender
        self._deployment.begin(plant.minimum if plant.initial is None else plant.initial)
        # In this order where they fall on the same time.
        self._every(_SETTLE_S, self._settle, phase=0.0)
        if contender.scrape_interval_s:
            self._every(contender.scrape_interval_s, self._scrape)
        if contender.interval_s is not None:
            self._every(contender.interval_s, self._ask)
        self._every(contender.sync_s, self._sync)
        if plant.minimum == 0:
            self._every(_SETTLE_S if contender.pushes else POLLING_S, self._poll)
        self._every(MOMENT_S, self._note, phase=0.0)
        if plant.deploy is not None:
            heapq.heappush(
                self._agenda, (plant.deploy * duration_s, len(self._agenda), math.inf, self._deployment.roll)
            )
        while self._agenda[0][0] <= duration_s:
            due, order, period, action = self._agenda[0]
            self._advance(due)
            heapq.heapreplace(self._agenda, (due + period, order, period, action))
            action()
        self._advance(duration_s)
        self._deployment.settle(duration_s)
        node_hours = None if plant.nodes is None else self._nodes.paid_s / 3600
        self._finish(duration_s + _LAST_S)
        return Run(duration_s, self._outcomes, self._moments, self._changes, self._deployment.all, node_hours)

    def _every(self, period: float, action: Callable[[], None], phase: float | None = None) -> None:
        first = period * (self._phase() if phase is None else phase)
        heapq.heappush(self._agenda, (first, len(self._agenda), period, action))

    # Traffic

    def _advance(self, until: float) -> None:
        """Play fleet and traffic up to a time."""
        while (request := self._next) is not None and request.arrival_s <= until:
            self._next = next(self._arriving, None)
            self._release(request.arrival_s)
            self._count(request)
            if self._someone_is_ready(request.arrival_s):
                self._fleet.send(request, request.arrival_s)
            else:
                self._held.append(request)
        self._release(until)
        self._outcomes += self._fleet.advance(until)
        self._now = until

    def _count(self, request: Request) -> None:
        before = self._arrived
        self._arrived = Gateway(
            before.requests + 1,
            before.prompt_tokens + request.prompt_tokens,
            before.cached_tokens + request.cached_tokens,
        )

    def _someone_is_ready(self, now: float) -> bool:
        return any(
            pod.state is PodState.READY or (pod.state is PodState.STARTING and pod.ready <= now)
            for pod in self._fleet.pods.values()
        )

    def _release(self, until: float) -> None:
        """Send on what the gateway holds, at the moment at which the first pod becomes ready."""
        if not self._held:
            return
        pods = self._fleet.pods.values()
        ready = min((pod.ready for pod in pods if pod.state in {PodState.STARTING, PodState.READY}), default=None)
        if ready is None or ready > until:
            return
        now = max(ready, self._fleet.now)
        while self._held:
            self._fleet.send(self._held.popleft(), now)

    def _finish(self, end: float) -> None:
        """Let what is left finish: nothing scales any more, and it costs nothing. Then give the rest up."""
        while self._now < end and (self._held or self._fleet.outstanding):
            self._advance(self._now + MOMENT_S)
        now = self._now
        self._outcomes += [Outcome(request, Verdict.REFUSED, now) for request in self._held]
        for name in list(self._fleet.pods):
            self._fleet.kill(name, now)
        self._outcomes += self._fleet.advance(now)

    # What the contender sees

    def _scrape(self) -> None:
        self._samples = {
            replica.name: self._reader.read(replica.name, replica.pod.engine, self._now)
            for replica in self._deployment
            if replica.pod is not None and replica.phase == "ready"
        }
        held = len(self._held)
        tokens = sum(request.prompt_tokens for request in self._held)
        self._gateway = replace(self._arrived, waiting=held, waiting_prompt_tokens=tokens)
        load = self._meter.measure(self._now, self._samples)
        if held:
            load = replace(load, waiting=(load.waiting or 0.0) + held)
        self._load, self._scraped = load, self._now

    def _see(self) -> Seen:
        if not self._contender.scrape_interval_s:
            self._scrape()
        pods = [SeenPod(each.name, each.phase, self._page(each)) for each in self._deployment]
        return Seen(self._now, self._scraped, self._observe(), pods, self._gateway)

    def _page(self, replica: Replica) -> Sample | None:
        said = self._samples.get(replica.name)
        return said if isinstance(said, Sample) else None

    def _observe(self) -> Observation:
        new = [r for r in self._deployment if r.name not in self._started and r.ready is not None]
        self._started.update(replica.name for replica in new)
        self._start_up.see(
            Pod(r.name, r.name, Phase.READY, self._now, r.created, scheduled_at=r.scheduled, ready_at=r.ready)
            for r in new
        )
        return Observation(
            time=self._now,
            load=self._load,
            replicas=self._replicas(),
            limits=self._limits,
            start_up=self._start_up.start_up,
            utc=_SUNDAY_MIDNIGHT + self._now,
        )

    def _replicas(self) -> Replicas:
        counts = self._deployment.replicas
        if not counts.unschedulable:
            return counts
        oldest = min(replica.created for replica in self._deployment if replica.phase == "pending")
        return replace(counts, unschedulable_s=self._now - oldest, lacks="nvidia.com/gpu")

    # What moves the count

    def _ask(self) -> None:
        answer = self._contender.want(self._see())
        want = Want(answer) if isinstance(answer, int | float) else answer
        self._want = want
        self._deployment.warm = 0 if want is None else want.warm
        if want is not None and want.at_once is not None:
            count = min(want.at_once, self._plant.maximum)
            if count > self._deployment.requested > 0:
                self._scale(count, "direct")

    def _sync(self) -> None:
        if self._contender.interval_s is None:
            self._ask()
        if self._want is None:
            return
        replicas = self._deployment.replicas
        self._scale(self._hpa.sync(self._want.value, self._now, replicas.requested, replicas.current), "HPA")

    def _poll(self) -> None:
        """Do what KEDA does itself: from zero to one, and back after the cool-down."""
        if self._contender.interval_s is None:
            self._ask()
        if self._want is None:
            return
        active = self._want.value > 0 if self._want.active is None else self._want.active
        if active:
            self._active_at = self._now
            if self._deployment.requested == 0:
                self._scale(1, "KEDA")
        elif self._deployment.requested > 0 and self._now - self._active_at >= COOLDOWN_S:
            self._scale(0, "KEDA")

    def _scale(self, replicas: int, by: str) -> None:
        before = self._deployment.requested
        if replicas != before:
            reason = self._want.reason if self._want is not None else ""
            self._changes.append(Change(self._now, before, replicas, by, reason))
            self._deployment.scale(replicas, self._now)

    def _settle(self) -> None:
        self._deployment.settle(self._now)

    def _note(self) -> None:
        engines = [pod.engine for pod in self._fleet.pods.values()]
        replicas, arrived = self._deployment.replicas, self._arrived.requests
        self._moments.append(
            Moment(
                time=self._now,
                arrivals=arrived - self._arrivals_before,
                waiting=sum(engine.waiting for engine in engines) + len(self._held),
                running=sum(engine.running for engine in engines),
                requested=replicas.requested,
                pending=replicas.unschedulable,
                starting=replicas.starting,
                ready=replicas.ready,
                terminating=replicas.terminating,
            )
        )
        self._arrivals_before = arrived
