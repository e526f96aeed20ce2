"""LMDeploy. Its scheduler's gauges are up to 10 s old."""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

DIALECT = Dialect(
    name="lmdeploy",
    prefixes=("lmdeploy:",),
    waiting=metrics("lmdeploy:num_requests_waiting"),
    waiting_outside=metrics("lmdeploy:num_api_requests_waiting"),
    running=metrics("lmdeploy:num_requests_running"),
    kv_cache_usage=metrics("lmdeploy:gpu_cache_usage_perc"),
    counters={
        "prompt_tokens": metrics("lmdeploy:prompt_tokens_total"),
        "generation_tokens": metrics("lmdeploy:generation_tokens_total"),
    },
    histograms={
        "ttft": metrics("lmdeploy:time_to_first_token_seconds"),
        "itl": metrics("lmdeploy:iter_token_latency"),
        "e2e": metrics("lmdeploy:e2e_request_latency_seconds"),
        "queue_time": metrics("lmdeploy:request_queue_time_seconds"),
    },
    hint="is the engine started with --disable-metrics?",
)
