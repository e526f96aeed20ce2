"""One target: its control loop, what it remembers, and the answers it gives from memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

import structlog

from scaler.cluster.model import Discovery, DiscoveryError, Phase, Pod, Workload
from scaler.cluster.scheduling import lacking
from scaler.exposition.sample import Sample
from scaler.policy import Decision, Limits, Observation, Replicas, State, decide
from scaler.policy.budget import Allowance
from scaler.sources.source import Endpoint, ReadOptions, Source, Unknown
from scaler.sources.turns import Turns
from scaler.targets.asking import Asking
from scaler.targets.clock import Clock
from scaler.targets.given import Given
from scaler.targets.history import History
from scaler.targets.load import LoadMeter
from scaler.targets.record import PodRecord, Record
from scaler.targets.settings import TriggerSettings
from scaler.targets.start_up import StartUpMeter

log = structlog.get_logger(__name__)

_PORT_NAMES = ("metrics", "http-metrics", "http")
_DEFAULT_PORT = 8000
_DEADLINE_SHARE = 0.8
"""Part of a tick that reading may take: the rest is for deciding, and for being on time again."""

Outcomes = Mapping[str, Sample | Unknown]
T = TypeVar("T")


class Stale(Exception):
    """There is no answer fresh enough to give; the message says why."""


class TargetState(StrEnum):
    """What a target is doing."""

    WAITING = "waiting"
    """No decision yet."""
    ACTIVE = "active"
    """Something waits, runs or loads."""
    IDLE = "idle"
    CAPACITY_BLOCKED = "capacity-blocked"
    """Pods find no node for longer than one takes, and more of them would not either."""
    STALE = "stale"
    """What is known is too old to answer from."""
    INVALID = "invalid"
    """The metadata are wrong and no earlier valid ones are known."""


def state_of(decision: Decision) -> TargetState:
    """What a target was doing when it decided so."""
    if decision.blocked:
        return TargetState.CAPACITY_BLOCKED
    return TargetState.ACTIVE if decision.active else TargetState.IDLE


class GpuUse(Protocol):
    """Where GPU use comes from, if anywhere."""

    def utilization(self, namespace: str, pod: str, host_ip: str) -> float | None:
        """Return a pod's GPU use, 0 to 1, from memory; None when it is unknown."""
        ...


class Observer(Protocol):
    """Somebody who is told of every tick, say a recorder."""

    def __call__(self, target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:
        """Take note. Called in the loop: it must not wait."""
        ...


@dataclass(slots=True)
class World:
    """What all targets of a server share."""

    discovery: Discovery
    source: Source
    gpu: GpuUse | None = None
    shadow: bool = False
    """Decide and explain, but answer KEDA with the present count."""
    observers: list[Observer] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    turns: Turns = field(default_factory=Turns)
    allowance: Callable[[Target], Allowance | None] | None = None
    """What a budget leaves a target, where there are budgets."""


class Target:
    """One ScaledObject trigger that is served. `tick` is its control loop's body; all else answers from memory."""

    def __init__(
        self,
        namespace: str,
        name: str,
        trigger: str,
        policy_name: str,
        settings: TriggerSettings,
        world: World,
        discovery: Discovery | None = None,
        given: Mapping[str, Given] | None = None,
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.trigger = trigger
        self.policy_name = policy_name
        self.settings = settings
        self.given = given or {}
        """Where the settings come from: what was given, by key; the others are defaults."""
        self.invalid = ""
        """What is wrong with newer metadata, while these go on."""
        self.history = History()
        self.unasked = ""
        """What is wrong while KEDA does not ask; empty while it does."""
        self.room = 0
        """Replicas for which room is kept on nodes that are there."""
        self.without_room = ""
        """Why nodes may have no room for the replicas to come that it wants room for; empty while all is well."""
        self.unmarked = ""
        """Why its pods cannot be marked by what they have to do; empty while they can, or need not be."""
        self.asking = Asking(world.clock)
        self._world = world
        self._discovery = discovery or world.discovery
        self._options = ReadOptions(
            path=settings.metrics_path, scheme=settings.metrics_scheme, engine=settings.engine, namespace=namespace
        )
        self._state: State | None = None
        self._load = LoadMeter(settings.look_back_period_s)
        self._start_up = StartUpMeter()
        self._failure = "no tick yet"
        self._fresh_at: float | None = None
        self._held_at: float | None = None
        """When a tick last held the count that KEDA must not be left alone with, since no pod could be read."""
        self._last_change = ("", 0.0)
        self._ticked = asyncio.Event()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def succeed(self, predecessor: Target) -> None:
        """Go on where a target with other settings for the same ScaledObject stopped."""
        self._start_up = predecessor._start_up
        if predecessor._state is not None:
            self._state = predecessor._state.under_new_settings()
        self._last_change = predecessor._last_change

    # The loop

    async def run(self, phase: float) -> None:
        """Tick every `metrics_interval_s` until cancelled; `phase` (0 to 1) spreads targets over the interval."""
        interval, clock = self.settings.metrics_interval_s, self._world.clock
        due = clock.monotonic() + interval * phase
        await self._tick_safely()
        while True:
            due = max(due + interval, clock.monotonic())  # ticks that were missed are not made up for
            await clock.sleep(due - clock.monotonic())
            await self._tick_safely()

    async def _tick_safely(self) -> None:
        try:
            await self.tick()
        except Exception as error:  # one target's fault must not end its loop
            before, self._failure = self._failure, f"{type(error).__name__}: {error}"
            if self._failure != before:  # told once, not every second
                log.exception("tick failed", target=str(self), trigger=self.trigger)

    async def tick(self) -> None:
        """Discover, sample, measure, decide and remember, once."""
        world = self._world
        began = world.clock.monotonic()
        await world.turns.begin()
        try:
            workload = self._discovery.workload(self.namespace, self.name)
        except DiscoveryError as error:
            self._failure = str(error)
            return
        age = world.clock.utc() - workload.seen_at
        if age > self.settings.staleness_s:
            self._failure = ": ".join((f"the cluster was last seen {age:.0f}s ago", *workload.warnings[-1:]))
            return
        self.may_be_idled = workload.may_be_idled
        self._start_up.see(workload.pods)
        outcomes = await self._sample(workload)
        now, utc = world.clock.monotonic(), world.clock.utc()
        observation = await self._observe(workload, outcomes, now, utc)
        before = observation.replicas.requested
        if self._state is not None and self._state.desired is not None:
            before = self._state.desired
        self._state, decision = decide(self.settings, self._state, observation)
        if decision.desired != before:
            self._last_change = (decision.reason, utc)
            log.info("desired changed", target=str(self), desired=decision.desired, before=before, why=decision.reason)
        record = Record(
            time=utc,
            observation=observation,
            decision=decision,
            pods=tuple(_pod_record(pod, outcomes.get(pod.name)) for pod in workload.pods),
            warnings=workload.warnings,
            emission=float(workload.requested) if world.shadow else decision.emission.value,
            took_s=world.clock.monotonic() - began,
            before=before,
            last_change=self._last_change[0],
            last_change_time=self._last_change[1],
        )
        self.history.add(record)
        if observation.load.known or not observation.load.unknown:
            self._fresh_at, self._failure = now, ""
        else:
            pod, reason = next(iter(observation.load.unknown.items()))
            self._failure = f"no pod can be read; {pod}: {reason}"
            if self.may_be_idled:
                self._held_at = now
        self._ticked.set()
        self._ticked = asyncio.Event()
        for observer in world.observers:
            observer(self, record, workload, outcomes)

    async def _in_turns(self, work: Generator[None, None, T]) -> T:
        """Do each piece of the work in a turn of its own, so that RPCs are answered in between."""
        while True:
            await self._world.turns.end()
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result

    async def _sample(self, workload: Workload) -> Outcomes:
        endpoints = [
            Endpoint(pod.name, pod.uid, pod.ip, self._port(pod)) for pod in workload.pods if pod.phase is Phase.READY
        ]
        if not endpoints:
            return {}
        deadline = self._world.clock.real(self.settings.metrics_interval_s * _DEADLINE_SHARE)
        outcomes = await self._world.source.sample(endpoints, self._options, deadline)
        return {pod: _awake(outcome) for pod, outcome in outcomes.items()}

    def _port(self, pod: Pod) -> int:
        if self.settings.metrics_port is not None:
            return self.settings.metrics_port
        return next((pod.ports[name] for name in _PORT_NAMES if name in pod.ports), _DEFAULT_PORT)

    async def _observe(self, workload: Workload, outcomes: Outcomes, now: float, utc: float) -> Observation:
        gpu = self._world.gpu
        ready = [pod for pod in workload.pods if pod.phase is Phase.READY]
        gpu_use = {} if gpu is None else {p.name: gpu.utilization(self.namespace, p.name, p.host_ip) for p in ready}
        known_gpu_use = {pod: use for pod, use in gpu_use.items() if use is not None}
        return Observation(
            time=now,
            utc=utc,
            load=await self._in_turns(self._load.measuring(now, outcomes, known_gpu_use)),
            replicas=_replicas(workload, utc, self.room),
            limits=Limits(workload.minimum, workload.maximum, workload.tolerance_up, workload.tolerance_down),
            start_up=self._start_up.start_up,
            allowance=self._world.allowance(self) if self._world.allowance else None,
        )

    # The answers

    @property
    def latest(self) -> Record | None:
        """The newest record, None before the first decision."""
        return self.history.latest

    def records(self) -> Iterator[Record]:
        """Give what is remembered, oldest first."""
        return iter(self.history)

    @property
    def state(self) -> TargetState:
        """What the target is doing now."""
        if self.latest is None:
            return TargetState.WAITING
        if self._stale():
            return TargetState.STALE
        return state_of(self.latest.decision)

    @property
    def reason(self) -> str:
        """Why the state is neither active nor idle; empty otherwise."""
        if self.latest is None:
            return self._failure
        return self._stale() or self.latest.decision.blocked

    @property
    def warnings(self) -> tuple[str, ...]:
        """Things to know, one line each."""
        workload = self.latest.warnings if self.latest else ()
        return (*filter(None, (self.invalid, self.unasked, self.without_room, self.unmarked)), *workload)

    @property
    def active(self) -> bool:
        """Whether going to zero could hurt. Raises Stale when it cannot be told."""
        return self._fresh().decision.active

    def answer(self) -> float:
        """Return the metric value for KEDA. Raises Stale with the reason when there is none fresh enough."""
        return self._fresh().emission

    def _fresh(self) -> Record:
        if self.latest is None:
            raise Stale(f"{self}: no decision yet: {self._failure}")
        if (stale := self._stale()) and not self._holds():
            raise Stale(f"{self}: {stale}")
        return self.latest

    def _holds(self) -> bool:
        """Whether the count is known although no pod is, and KEDA is better told to keep it than told nothing.

        A refusal freezes the HPA. But where the HPA's question fails in the same moment as KEDA's own, KEDA 2.21 takes
        a trigger for inactive instead of failed, and it alone may then go to zero, or to `idleReplicaCount`. Besides,
        each refusal makes it close its connection, and with it the streams.
        """
        return self._held_at is not None and self._world.clock.monotonic() - self._held_at <= self.settings.staleness_s

    def _stale(self) -> str:
        now = self._world.clock.monotonic()
        if self._fresh_at is not None and now - self._fresh_at <= self.settings.staleness_s:
            return ""
        age = "ever" if self._fresh_at is None else f"for {now - self._fresh_at:.0f}s"
        return f"nothing fresh {age} (staleness {self.settings.staleness_s:g}s): {self._failure or 'ticks are late'}"

    async def first_decision(self, timeout_s: float) -> None:
        """Wait until there is a decision, at most `timeout_s` seconds."""
        if self.latest is None:
            try:
                async with asyncio.timeout(timeout_s):
                    await self.next_record(None)
            except TimeoutError:
                return

    async def next_record(self, after: Record | None) -> Record:
        """Return the newest record as soon as it is another than `after`."""
        while (latest := self.latest) is None or latest is after:
            await self._ticked.wait()
        return latest


def _awake(outcome: Sample | Unknown) -> Sample | Unknown:
    """A sleeping engine's page shows an empty queue whatever waits before it."""
    if isinstance(outcome, Sample) and outcome.asleep:
        return Unknown("the engine sleeps: what waits for it is not on its page")
    return outcome


def _replicas(workload: Workload, utc: float, room: int) -> Replicas:
    count = dict.fromkeys(Phase, 0)
    for pod in workload.pods:
        count[pod.phase] += 1
    unschedulable = (pod for pod in workload.pods if pod.phase is Phase.UNSCHEDULABLE)
    oldest = min(unschedulable, key=lambda pod: pod.since, default=None)
    there = count[Phase.READY] + count[Phase.STARTING] + count[Phase.UNSCHEDULABLE]
    return Replicas(
        requested=workload.requested,
        current=workload.current,
        ready=count[Phase.READY],
        starting=count[Phase.STARTING] + max(0, workload.requested - there),  # asked for, no pod yet
        terminating=count[Phase.TERMINATING],
        unschedulable=count[Phase.UNSCHEDULABLE],
        unschedulable_s=max(0.0, utc - oldest.since) if oldest else 0.0,
        lacks=lacking(oldest.reason) if oldest else "",
        room=room,
    )


def _pod_record(pod: Pod, outcome: Sample | Unknown | None) -> PodRecord:
    if isinstance(outcome, Sample):
        return PodRecord(pod.name, pod.phase, pod.since, outcome.waiting, outcome.running, outcome.kv_cache_usage)
    return PodRecord(pod.name, pod.phase, pod.since, unknown=outcome.reason if outcome else pod.reason)
