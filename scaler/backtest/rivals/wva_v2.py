"""llm-d's Workload Variant Autoscaler, version 2: tokens demanded against tokens that a replica can hold.

Source: llm-d-workload-variant-autoscaler, `internal/engines/analyzers/saturation_v2/analyzer.go` and
`internal/engines/pipeline/cost_aware_optimizer.go`, for one variant.

    demand   = Σ tokens in use + queue · mean prompt, plus the router's queue · (uncached prompt + output)
    k1       = 0.80 · KV tokens
    k2       = tokens in use where queue ≥ 5, else the mean of the last ten such, else N · (I + O/2)
               with N = min(B · O / (I + O), S) from batched tokens B, sequences S, mean prompt I and output O
    capacity = median of min(k1, k2)
    up       + ceil((demand/0.85 − (ready + pending) · capacity) / capacity)
    down     − floor((ready · capacity − demand/0.70) / capacity)

What the gateway holds stands in for the router's flow-control queue.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import fmean, median

from scaler.backtest.contender import Seen, Setup
from scaler.backtest.rivals.signals import PromptMeter
from scaler.backtest.rivals.wva import WorstMinute, Wva
from scaler.policy.counting import ceil


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults of its ConfigMap."""

    kv_threshold: float = 0.80
    queue_threshold: float = 5.0
    scale_up_threshold: float = 0.85
    scale_down_boundary: float = 0.70
    loop_s: float = 30.0


class WvaV2(Wva[Settings]):
    """As many replicas as the tokens need."""

    look_back_s = 300.0

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "wva-v2") -> None:
        super().__init__(setup, settings, name, settings.loop_s)
        self._prompts = PromptMeter(self.look_back_s)
        self._observed: dict[int, deque[float]] = {}
        """Bucket of the output length → tokens in use of pods that had a queue."""

    def decide(self, seen: Seen, replicas: list[WorstMinute]) -> int:
        """Return the present count plus what is missing, or less what is spare; at least 1."""
        prompts, output = self._prompts.measure(seen), seen.observation.load.tokens_per_request or 0.0
        in_use = [replica.kv_usage * self.setup.profile.kv_tokens for replica in replicas]
        demand = math.fsum(t + r.waiting * prompts.tokens for t, r in zip(in_use, replicas, strict=True))
        demand += seen.gateway.waiting * (prompts.tokens - prompts.cached + output)
        k1 = self.settings.kv_threshold * self.setup.profile.kv_tokens
        k2 = [self._k2(t, r.waiting, prompts.tokens, output, k1) for t, r in zip(in_use, replicas, strict=True)]
        capacity = median(min(k1, k) for k in k2)
        now = seen.observation.replicas
        required = demand / self.settings.scale_up_threshold - now.current * capacity
        spare = now.ready * capacity - demand / self.settings.scale_down_boundary
        if required > 0:
            return now.current + ceil(required / capacity)
        return max(1, now.current - math.floor(max(0.0, spare) / capacity))

    def _k2(self, in_use: float, waiting: float, prompt: float, output: float, k1: float) -> float:
        bucket = 0 if output < 100 else 1 if output < 500 else 2
        if waiting >= self.settings.queue_threshold and in_use >= 1:
            self._observed.setdefault(bucket, deque(maxlen=10)).append(in_use)
            return in_use
        if bucket in self._observed:
            return fmean(self._observed[bucket])
        batched, most = self.setup.profile.max_num_batched_tokens, self.setup.profile.max_num_seqs
        derived = min(batched * output / (prompt + output), most) * (prompt + output / 2) if output > 0 else 0.0
        return derived if derived >= 1 else k1
