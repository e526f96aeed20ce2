"""The traffic and the clusters of the grid, and which part of them may be tuned on.

A recorded trace has one history: its first half is tuned on and its second half judged on. A made-up one is drawn
anew for each seed: some seeds are tuned on, others judged on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from inference.simulated import PROFILES, Request
from scaler.backtest.deployment import PodLuck
from scaler.backtest.plant import Plant
from scaler.backtest.traces import Trace, find
from scaler.backtest.work import columns, decode_s, prefill_s

TRACES = Path(__file__).with_name("traces")
VERDICT_SEEDS = tuple(range(1, 9))
"""Nothing is ever tuned on these."""
TUNING_SEEDS = tuple(range(101, 109))
START_UPS_S = (10.0, 60.0, 120.0, 180.0, 300.0)
_SWING_S = 300.0
AT_REST_S = 30.0
"""The start-up that 180 s are compared with, to find a cliff."""

Part = Literal["verdict", "tuning"]


@dataclass(frozen=True, slots=True)
class Scene:
    """Traffic on a cluster."""

    name: str
    what: str
    """One line for people."""
    trace: str
    """The name of a made-up one, or a file in `TRACES`."""
    profile: str
    minimum: int
    maximum: int
    initial: int
    """Replicas that are ready at the beginning."""
    fixed: tuple[int, ...]
    """Counts of the static frontier."""
    scale: float = 1.0
    length_s: float | None = None
    """How much of the part is played; None: all of it."""
    usual_start_up_s: float = 60.0
    """The one at which everybody is judged on all verdict seeds."""
    seen: bool = True
    """Whether our own policy was worked on with its tuning part; one that is not was kept for the verdict."""
    jumps: bool = False
    """Whether the load jumps, so that who does not know the future is late by a start-up."""
    pulse_s: float | None = None
    """When a pulse begins that is to be answered at once."""
    start_ups_s: tuple[float, ...] = field(default=START_UPS_S)

    @property
    def recorded(self) -> bool:
        """Whether the traffic was recorded once, so that seeds cannot keep tuning and verdict apart."""
        return "." in self.trace

    def traffic(self, part: Part) -> Trace:
        """Return the part of the trace that is played."""
        return _traffic(self, part)

    def plant(self, start_up_s: float) -> Plant:
        """Return the cluster with this start-up time."""
        return Plant(
            minimum=self.minimum,
            maximum=self.maximum,
            initial=self.initial,
            luck=PodLuck(start_up_s),
            profile=PROFILES[self.profile],
        )


@lru_cache
def _traffic(scene: Scene, part: Part) -> Trace:
    whole = find(str(TRACES / scene.trace) if scene.recorded else scene.trace)
    half = whole.duration_s / 2
    begin = half if scene.recorded and part == "verdict" else 0.0
    end = half if scene.recorded and part == "tuning" else whole.duration_s
    return whole.between(begin, end if scene.length_s is None else begin + scene.length_s).scaled(scene.scale)


@lru_cache(maxsize=4)
def requests(scene: Scene, part: Part, seed: int) -> Sequence[Request]:
    """Return the requests of a run in order of arrival."""
    return scene.traffic(part).requests(seed)


@cache
def swing(scene: Scene) -> float:
    """Return how many times the work of the calmest five minutes the busiest bring, in engine time."""
    profile, all_requests = PROFILES[scene.profile], requests(scene, "verdict", VERDICT_SEEDS[0])
    arrival, prompt, cached, output = columns(all_requests)
    work = prefill_s(profile, prompt - cached, cached) + decode_s(profile, output, prompt + output / 2)
    edges = np.arange(0.0, scene.traffic("verdict").duration_s, _SWING_S)
    sums, _ = np.histogram(arrival, edges, weights=work)
    return float(sums.max() / sums.min()) if sums.min() > 0 else math.inf


_AZURE_CODE, _AZURE_CHAT = "AzureLLMInferenceTrace_code.csv.gz", "AzureLLMInferenceTrace_conv.csv.gz"
_MOONCAKE = "mooncake_conversation_trace.jsonl.gz"
_RAMP = "llm-d's guide: 2 to 10 requests/s in steps of six minutes, then 4 and 1; 4,000 prompt and 1,000 output tokens"

_ALL = (
    Scene(
        "ramp-time",
        f"{_RAMP}; time per token is what runs out",
        "llm-d-ramp",
        "time_bound",
        minimum=3,
        maximum=8,
        initial=3,
        fixed=(3, 4, 5, 6, 7, 8),
        usual_start_up_s=100.0,
        start_ups_s=(10.0, 60.0, 100.0, 120.0, 180.0, 300.0),
    ),
    Scene(
        "ramp-kv",
        "the same ramp; room in the KV cache is what runs out",
        "llm-d-ramp",
        "memory_bound",
        minimum=3,
        maximum=8,
        initial=3,
        fixed=(3, 4, 5, 6, 7, 8),
        usual_start_up_s=100.0,
        start_ups_s=(10.0, 60.0, 100.0, 120.0, 180.0, 300.0),
    ),
    Scene(
        "azure-code",
        "code completion at Azure, twice: bursts of short answers, most seconds empty",
        _AZURE_CODE,
        "memory_bound",
        minimum=1,
        maximum=16,
        initial=2,
        fixed=(1, 2, 3, 4, 5, 6, 8, 12, 16),
        scale=2.0,
        jumps=True,
    ),
    Scene(
        "azure-conversation",
        "chat at Azure, three times",
        _AZURE_CHAT,
        "time_bound",
        minimum=1,
        maximum=12,
        initial=4,
        fixed=(2, 3, 4, 5, 6, 8),
        scale=3.0,
        length_s=1200.0,
    ),
    Scene(
        "mooncake",
        "chat at Mooncake: long prompts, half of them in the prefix cache; nearly flat",
        _MOONCAKE,
        "memory_bound",
        minimum=1,
        maximum=16,
        initial=6,
        fixed=(4, 5, 6, 7, 8, 10, 12, 16),
        length_s=1200.0,
    ),
    Scene(
        "cold-start",
        "the same from a cold start: two replicas where six or more are needed",
        _MOONCAKE,
        "memory_bound",
        minimum=1,
        maximum=16,
        initial=2,
        fixed=(4, 5, 6, 7, 8, 10, 12, 16),
        length_s=1200.0,
    ),
    Scene(
        "wave",
        "a sine between 1 and 9 requests/s, 30 minutes long",
        "wave",
        "time_bound",
        minimum=1,
        maximum=12,
        initial=4,
        fixed=(3, 4, 5, 6, 7, 8, 10),
        length_s=1800.0,
    ),
    Scene(
        "pulse",
        "0.5 requests/s, and for three minutes twenty times as many",
        "pulse",
        "memory_bound",
        minimum=1,
        maximum=12,
        initial=1,
        fixed=(1, 2, 4, 5, 6, 7, 8),
        pulse_s=600.0,
        jumps=True,
    ),
    Scene(
        "steps",
        "1, 4, 8, 3, 10 and 1 requests/s for five minutes each",
        "steps",
        "time_bound",
        minimum=1,
        maximum=12,
        initial=1,
        fixed=(2, 3, 4, 5, 6, 7, 8),
        jumps=True,
    ),
    Scene(
        "on-off",
        "6 requests/s for five minutes, none for ten; down to zero in between",
        "on-off",
        "memory_bound",
        minimum=0,
        maximum=12,
        initial=1,
        fixed=(2, 3, 4, 5, 6, 8),
        length_s=1800.0,
        jumps=True,
    ),
    Scene(
        "mix",
        "chat, code and long prompts at once, a sine between 3 and 17 requests/s",
        "mix",
        "memory_bound",
        minimum=1,
        maximum=16,
        initial=6,
        fixed=(2, 3, 4, 5, 6, 8, 10, 12),
        length_s=1800.0,
        seen=False,
    ),
)
SCENES: Mapping[str, Scene] = {scene.name: scene for scene in _ALL}
"""By name, in the order of the tables."""
