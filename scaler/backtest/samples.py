"""A simulated engine's metrics page as it would be read, without writing and parsing the text of it."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import inf

from inference.simulated import Engine
from inference.simulated.metrics import Histogram as Buckets
from scaler.exposition.sample import Histogram, Sample


def sample(engine: Engine) -> Sample:
    """Return what `scaler.exposition.read_page` would make of the engine's page at this moment."""
    metrics = engine.metrics
    return Sample(
        waiting=float(engine.waiting),
        running=float(engine.running),
        kv_cache_usage=engine.kv_cache_usage,
        counters={
            "prompt_tokens": float(metrics.prompt_tokens),
            "generation_tokens": float(metrics.generation_tokens),
            "requests_finished": float(metrics.finished),
            "preemptions": float(metrics.preemptions),
            "prefix_cache_queries": float(metrics.prefix_cache_queries),
            "prefix_cache_hits": float(metrics.prefix_cache_hits),
        },
        histograms={
            "ttft": _cumulative(metrics.time_to_first_token),
            "itl": _cumulative(metrics.inter_token_latency),
            "tpot": _cumulative(metrics.time_per_output_token),
            "e2e": _cumulative(metrics.e2e_latency),
            "queue_time": _cumulative(metrics.queue_time),
        },
        engine="vllm",
    )


@lru_cache
def _with_infinity(bounds: tuple[float, ...]) -> tuple[float, ...]:
    return (*bounds, inf)


def _cumulative(buckets: Buckets) -> Histogram:
    return Histogram(_with_infinity(buckets.bounds), tuple(map(float, accumulate(buckets.counts))), buckets.total)
