"""NVIDIA NIM for LLMs, on `/v1/metrics`: vLLM's names without a prefix.

https://docs.nvidia.com/nim/large-language-models/latest/observability.html
"""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

DIALECT = Dialect(
    name="nim",
    prefixes=("num_requests_running", "num_requests_waiting"),
    waiting=metrics("num_requests_waiting"),
    running=metrics("num_requests_running"),
    kv_cache_usage=metrics("gpu_cache_usage_perc"),
    counters={
        "prompt_tokens": metrics("prompt_tokens_total"),
        "generation_tokens": metrics("generation_tokens_total"),
        "requests_finished": metrics("request_finish_total"),
    },
    histograms={
        "ttft": metrics("time_to_first_token_seconds"),
        "itl": metrics("time_per_output_token_seconds"),
        "e2e": metrics("e2e_request_latency_seconds"),
    },
)
