"""What the policy is told at one tick: load, replicas and limits. Plain numbers; None is unknown, never zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from scaler.policy.budget import Allowance


@dataclass(frozen=True, slots=True)
class Latency:
    """Quantiles of one latency over the look-back, in seconds."""

    p50: float
    p90: float
    p95: float
    p99: float
    worst_p95: float
    """The highest p95 of any single pod."""


@dataclass(frozen=True, slots=True)
class Load:
    """The samples of a target's ready pods, summed and turned into rates over `look_back_period_s`.

    Sums are over the pods that are *known*; `unknown` names the others with the reason.
    """

    known: int = 0
    """Ready pods whose page was read."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Ready pods that could not be read → why."""
    waiting: float | None = None
    """Requests that wait, in engines and in any router whose queue was read."""
    running: float | None = None
    """Requests in running batches."""
    kv_cache_usage: float | None = None
    """Share of the KV cache in use, mean over known pods, 0 to 1."""
    gpu_utilization: float | None = None
    """Mean GPU use over known pods, 0 to 1."""
    arrival_rate: float | None = None
    """Requests that arrived, per second."""
    completion_rate: float | None = None
    """Requests that finished, per second."""
    prompt_token_rate: float | None = None
    """Prompt tokens processed, per second."""
    generation_token_rate: float | None = None
    """Tokens generated, per second."""
    tokens_per_request: float | None = None
    """Mean generated tokens of the requests that finished."""
    most_running: float | None = None
    """The most requests running in one pod."""
    full_running: float | None = None
    """Mean requests running in the pods where others wait: the batch slots that these pods really have."""
    latency: Mapping[str, Latency] = field(default_factory=dict)
    """`ttft`, `itl`, `tpot`, `e2e`, `queue_time`; a name is absent when nothing was observed in the look-back."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """Where the replicas are. Counts are of replicas (for a multi-host replica: of its leader)."""

    requested: int
    """`spec.replicas` of the scale target."""
    current: int
    """`status.replicas` of the scale target, which the HPA calls currentReplicas."""
    ready: int
    starting: int = 0
    terminating: int = 0
    unschedulable: int = 0
    """Pods that no node takes; not counted in `starting`."""
    unschedulable_s: float = 0.0
    """For how long the oldest of them has waited."""
    lacks: str = ""
    """What that one lacks, say `nvidia.com/gpu`."""
    room: int = 0
    """Replicas for which room is kept on nodes that are there."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the count: the ScaledObject's limits and the HPA's effective tolerance."""

    minimum: int
    maximum: int
    tolerance_up: float = 0.1
    tolerance_down: float = 0.1


@dataclass(frozen=True, slots=True)
class Took:
    """How long something took, in seconds."""

    median: float
    p90: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Self | None:
        """Sum up what was seen, None for nothing."""
        ordered = sorted(seconds)
        if not ordered:
            return None
        return cls(*(ordered[min(len(ordered) - 1, math.floor(q * len(ordered)))] for q in (0.5, 0.9)))


@dataclass(frozen=True, slots=True)
class StartUp:
    """From "replica asked for" to "pod ready", measured on the last starts, in seconds. What was never seen is None."""

    median: float
    p90: float
    warm: Took | None = None
    """Of the starts that a node took at once."""
    cold: Took | None = None
    """Of those that waited for a node."""
    node: Took | None = None
    """The wait of the latter, from "replica asked for" to "pod scheduled": what a node takes on top."""
    image: Took | None = None
    """From "scheduled" to "containers run", of all starts: images, volumes, init containers."""
    load: Took | None = None
    """From "containers run" to "ready", of all starts: the engine loads its model."""
    last_cold: bool = False
    """Whether one of the very last starts waited for a node."""

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Self | None:
        """Sum up the starts that were seen, None for none, where their parts are not known."""
        total = Took.of(seconds)
        return None if total is None else cls(total.median, total.p90)


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that one decision is made from."""

    time: float
    """Seconds on a clock that never jumps back; only differences matter."""
    load: Load
    replicas: Replicas
    limits: Limits
    start_up: StartUp | None = None
    """None until a first pod was seen to start."""
    utc: float = 0.0
    """Unix time in seconds, for schedules."""
    allowance: Allowance | None = None
    """What a budget of GPUs leaves; None where no budget is for the target."""
