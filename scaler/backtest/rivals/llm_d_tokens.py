"""llm-d's token-aware rule (after TokenScale): seconds of queued prefill, and pods' worth of full KV cache.

Source: llm-d, `guides/workload-autoscaling/keda-epp-token-aware` (co-located prefill and decode), its calibration
guide and HPA behavior.

    replicas = max(in-flight uncached prompt tokens / V_P / 1.5 s, sum of KV cache usage / 0.8)
    V_P      = chunk / TTFT of a prompt of one chunk on an idle engine

The router's gauge of tokens that are not prefilled yet stands for what waits: requests in engine queues times the
mean uncached prompt of the last five minutes, and the prompts that the gateway holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.simulated import Profile
from scaler.backtest.contender import Seen, Setup
from scaler.backtest.hpa import Behavior, Hpa, ScalingPolicy
from scaler.backtest.rivals.rival import Rival
from scaler.backtest.rivals.signals import PromptMeter, pages, total
from scaler.backtest.work import prefill_s

_UP = Behavior(0.0, (ScalingPolicy("Pods", 1, 180.0),))
_DOWN = Behavior(300.0, (ScalingPolicy("Pods", 1, 300.0),))


@dataclass(frozen=True, slots=True)
class Settings:
    """The guide's, for short prompts and a TTFT of about 2 s."""

    queue_s: float = 1.5
    """Seconds of prefill that may wait for each replica."""
    kv_usage: float = 0.8
    """Share of its KV cache that a replica should use."""


class LlmDTokens(Rival[Settings]):
    """The bottleneck of prefill and decode wins."""

    def __init__(self, setup: Setup, settings: Settings = Settings(), name: str = "llm-d-tokens") -> None:
        super().__init__(setup, settings, name)
        self._prefill_rate = peak_prefill_throughput(setup.profile)
        self._prompts = PromptMeter()

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the guide's HPA: one pod in three minutes up, one in five down."""
        return Hpa(minimum, maximum, _UP, _DOWN)

    def want(self, seen: Seen) -> float:
        """Return the larger of both phases' wants."""
        prompt, page_list = self._prompts.measure(seen), pages(seen).values()
        uncached = 1 - prompt.cached / prompt.tokens if prompt.tokens else 1.0
        tokens = total(page.waiting for page in page_list) * prompt.tokens + seen.gateway.waiting_prompt_tokens
        backlog_s = tokens * uncached / self._prefill_rate
        occupied = total(page.kv_cache_usage for page in page_list)
        return max(backlog_s / self.settings.queue_s, occupied / self.settings.kv_usage)


def peak_prefill_throughput(profile: Profile) -> float:
    """Return V_P in tokens/s, as the calibration measures it: one prompt of a whole step on an idle engine."""
    chunk = profile.max_num_batched_tokens
    return chunk / (profile.step_time.overhead_s + prefill_s(profile, float(chunk), 0.0))
