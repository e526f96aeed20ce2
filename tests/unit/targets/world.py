"""A world for targets: pods, what their pages say, and a clock that is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scaler.cluster.model import DiscoveryError, Phase, Pod, ScaledObject, Trigger, Workload
from scaler.exposition.sample import Sample
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from scaler.targets import Target, Targets, World

ADAPTIVE = {"policy": "adaptive"}
SIMPLE = {"targetOngoingRequests": "10", "smoothingFactor": "1", "upscaleDelay": "0", "lookAhead": "0"}


def page(waiting: float = 0, running: float = 0, **counters: float) -> Sample:
    return Sample(waiting=waiting, running=running, kv_cache_usage=0.1, counters=counters, engine="vllm")


def pod(name: str, phase: Phase = Phase.READY, since: float = 0.0, **more: object) -> Pod:
    ready_at = since if phase is Phase.READY else None
    values: dict[str, object] = {"created": since - 30.0, "ready_at": ready_at, "ip": "127.0.0.1", **more}
    return Pod(name=name, uid=f"uid-{name}", phase=phase, since=since, **values)  # type: ignore[arg-type]


@dataclass
class HandClock:
    """A clock that stands until it is moved."""

    now: float = 1000.0
    utc_offset: float = 1_700_000_000.0
    speed: float = 1.0

    def monotonic(self) -> float:
        return self.now

    def utc(self) -> float:
        return self.now + self.utc_offset

    def real(self, seconds: float) -> float:
        return seconds

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def passes(self, seconds: float) -> None:
        """Let so much time pass, a second at a time, for others who sleep to have their turns."""
        for _ in range(int(seconds)):
            await self.sleep(1.0)


@dataclass
class Scene:
    """The discovery and the source of a test, both under its control."""

    clock: HandClock = field(default_factory=HandClock)
    pods: list[Pod] = field(default_factory=lambda: [pod("a"), pod("b")])
    pages: dict[str, Sample | Unknown] = field(default_factory=lambda: {"a": page(), "b": page()})
    requested: int | None = None
    minimum: int = 1
    idle: int | None = None
    missing: str = ""
    seen_ago_s: float = 0.0
    warnings: tuple[str, ...] = ()
    asked: list[Endpoint] = field(default_factory=list)
    options: ReadOptions | None = None

    def workload(self, namespace: str, name: str) -> Workload:
        if self.missing:
            raise DiscoveryError(self.missing)
        staying = sum(p.phase is not Phase.TERMINATING for p in self.pods)
        requested = staying if self.requested is None else self.requested
        seen_at = self.clock.utc() - self.seen_ago_s
        limits = {"minimum": self.minimum, "maximum": 20, "tolerance_up": 0.0, "tolerance_down": 0.0}
        return Workload(
            requested,
            staying,
            tuple(self.pods),
            warnings=self.warnings,
            seen_at=seen_at,
            idle=self.idle,
            **limits,  # type: ignore[arg-type]
        )

    async def sample(
        self, endpoints: Sequence[Endpoint], options: ReadOptions, deadline_s: float
    ) -> Mapping[str, Sample | Unknown]:
        self.asked, self.options = list(endpoints), options
        return {endpoint.pod: self.pages[endpoint.pod] for endpoint in endpoints}

    async def close(self) -> None:
        """Nothing is open."""

    def world(self, **more: object) -> World:
        return World(self, self, clock=self.clock, **more)  # type: ignore[arg-type]

    def targets(self, **more: object) -> Targets:
        return Targets(self.world(), **more)  # type: ignore[arg-type]

    def target(self, metadata: Mapping[str, str] = SIMPLE, **world: object) -> Target:
        return Targets(self.world(**world)).find("ns", "llama", metadata)

    async def tick(self, target: Target, times: int = 1) -> None:
        for _ in range(times):
            await target.tick()
            self.clock.now += 1.0

    def everywhere(self, sample: Sample | Unknown) -> None:
        self.pages = {p.name: sample for p in self.pods}


def scaled_object(*metadata: Mapping[str, str], name: str = "llama") -> ScaledObject:
    triggers = tuple(Trigger(i, "external", values) for i, values in enumerate(metadata))
    return ScaledObject("ns", name, "uid", 1, "apps/v1", "Deployment", name, 1, 20, 300.0, 30.0, False, triggers)
