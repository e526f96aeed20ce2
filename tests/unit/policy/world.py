"""Worlds for the policy, said in words: what is observed at one moment, and a tape that runs moments one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from scaler.policy import Decision, Latency, Limits, Load, Observation, PolicySettings, Replicas, StartUp, State, decide
from scaler.policy.parsing import parse
from scaler.policy.presets import with_policy

PLAIN = {"smoothingFactor": "1", "upscaleDelay": "0", "downscaleDelay": "0", "lookAhead": "0"}
"""Nothing between a demand and the count."""


def settings(**metadata: object) -> PolicySettings:
    """Settings from metadata keys, over those that change nothing."""
    return parse(PolicySettings, {**PLAIN, **{key: str(value) for key, value in metadata.items()}})


def preset(name: str, **metadata: object) -> PolicySettings:
    """The settings of a preset, with some keys overridden."""
    return parse(PolicySettings, with_policy({"policy": name, **{key: str(v) for key, v in metadata.items()}}))


def latency(p95: float, worst: float | None = None) -> Latency:
    return Latency(p50=p95 / 2, p90=p95 * 0.9, p95=p95, p99=p95 * 1.5, worst_p95=p95 if worst is None else worst)


def see(
    at: float = 0.0,
    *,
    waiting: float | None = 0.0,
    running: float | None = 0.0,
    ready: int = 4,
    requested: int | None = None,
    current: int | None = None,
    starting: int = 0,
    unschedulable: int = 0,
    unschedulable_s: float = 0.0,
    lacks: str = "",
    room: int = 0,
    unknown: int = 0,
    minimum: int = 0,
    maximum: int = 100,
    tolerance: float = 0.0,
    start_up: float | StartUp | None = None,
    utc: float = 0.0,
    **load: float | Mapping[str, Latency] | None,
) -> Observation:
    """One moment. `ready` pods of which `unknown` could not be read; nothing else is on the way unless said."""
    on_the_way = starting + unschedulable
    requested = ready + on_the_way if requested is None else requested
    known = ready - unknown
    return Observation(
        time=at,
        utc=utc,
        load=Load(
            known=known,
            unknown={f"pod-{i}": "timeout" for i in range(unknown)},
            waiting=waiting if known else None,
            running=running if known else None,
            **load,  # type: ignore[arg-type]
        ),
        replicas=Replicas(
            requested,
            requested if current is None else current,
            ready,
            starting,
            unschedulable=unschedulable,
            unschedulable_s=unschedulable_s,
            lacks=lacks,
            room=room,
        ),
        limits=Limits(minimum, maximum, tolerance, tolerance),
        start_up=StartUp(start_up, start_up * 1.5) if isinstance(start_up, float | int) else start_up,
    )


def first(settings: PolicySettings, observation: Observation) -> Decision:
    """The decision of the first tick."""
    return decide(settings, None, observation)[1]


@dataclass
class Tape:
    """Runs moments through the policy. Replicas follow the decision after `start_up` seconds, as pods would."""

    settings: PolicySettings
    ready: int = 4
    start_up: float = 0.0
    state: State | None = None
    time: float = 0.0
    starting: list[float] = field(default_factory=list)
    """When each replica on the way will be ready."""
    counts: list[int] = field(default_factory=list)
    decision: Decision | None = None

    def tick(self, seconds: float | None = None, **seen: object) -> int:
        """Let one interval (or `seconds`) pass, see, decide, and carry the decision to the pods."""
        self.time += self.settings.metrics_interval_s if seconds is None else seconds
        self.ready += sum(at <= self.time for at in self.starting)
        self.starting = [at for at in self.starting if at > self.time]
        known = {"ready": self.ready, "starting": len(self.starting), **seen}
        self.state, self.decision = decide(self.settings, self.state, see(self.time, **known))  # type: ignore[arg-type]
        self._follow(self.decision.desired)
        self.counts.append(self.decision.desired)
        return self.decision.desired

    def _follow(self, desired: int) -> None:
        missing = desired - self.ready - len(self.starting)
        if missing > 0:
            self.starting += [self.time + self.start_up] * missing
        for _ in range(-missing):
            if self.starting:
                self.starting.pop()
            else:
                self.ready -= 1
        if self.start_up == 0:
            self.ready, self.starting = self.ready + len(self.starting), []

    def run(self, seconds: float, **seen: object) -> list[int]:
        """Run ticks for so many seconds with the same thing seen; returns the counts decided."""
        ticks = round(seconds / self.settings.metrics_interval_s)
        return [self.tick(**seen) for _ in range(ticks)]

    @property
    def reason(self) -> str:
        assert self.decision is not None
        return self.decision.reason


def rules_said(decision: Decision | None) -> list[str]:
    """The rules that spoke, in order."""
    assert decision is not None
    return [step.rule for step in decision.steps]


def text_of(decision: Decision | None) -> str:
    """All that the decision says."""
    assert decision is not None
    return "\n".join((decision.reason, *(step.text for step in decision.steps), decision.emission.note))


@dataclass
class Engines:
    """Replicas with batch slots that serve a stream of requests, as a fluid: enough to close the loop."""

    slots: float = 16.0
    service_s: float = 8.0
    """How long a request runs."""
    tokens: float | None = None
    """Tokens that a request generates; None for engines that do not count them."""
    ongoing: float = 0.0
    recent: list[float] = field(default_factory=list)
    """The arrivals of the last ten looks: a rate is measured over a look-back."""

    def serve(self, arrivals: float, replicas: int, seconds: float) -> dict[str, float | None]:
        """Let `arrivals` requests a second come for so long; returns what the replicas' pages then say."""
        self.recent = [*self.recent, arrivals][-10:]
        running = min(self.ongoing + arrivals * seconds, replicas * self.slots)
        completed = running / self.service_s
        self.ongoing = max(0.0, self.ongoing + (arrivals - completed) * seconds)
        running = min(self.ongoing, replicas * self.slots)
        waiting = self.ongoing - running
        each = running / replicas if replicas else 0.0
        return {
            "waiting": waiting,
            "running": running,
            "most_running": each,
            "full_running": each if waiting >= 2 * replicas else None,
            "kv_cache_usage": min(1.0, each / self.slots * 0.5),
            "arrival_rate": sum(self.recent) / len(self.recent),
            "completion_rate": completed,
            "generation_token_rate": None if self.tokens is None else completed * self.tokens,
        }


def turns(counts: list[int]) -> int:
    """How often a series of counts changes its direction."""
    moves = [b - a for a, b in pairwise(counts) if a != b]
    return sum((a > 0) != (b > 0) for a, b in pairwise(moves))
