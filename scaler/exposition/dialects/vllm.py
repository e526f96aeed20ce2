"""vLLM 0.4 and newer, with either of its front ends: https://docs.vllm.ai/en/stable/usage/metrics/."""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

DIALECT = Dialect(
    name="vllm",
    prefixes=("vllm:",),
    waiting=metrics("vllm:num_requests_waiting"),
    running=metrics("vllm:num_requests_running"),
    kv_cache_usage=metrics("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),  # both are on pages of 0.9.2–0.10
    waiting_deferred=metrics("vllm:num_requests_waiting_by_reason", reason="deferred"),
    awake=metrics("vllm:engine_sleep_state", sleep_state="awake"),
    counters={
        "prompt_tokens": metrics("vllm:prompt_tokens_total"),
        "generation_tokens": metrics("vllm:generation_tokens_total"),
        "requests_finished": metrics("vllm:request_success_total"),
        "preemptions": metrics("vllm:num_preemptions_total"),
        "prefix_cache_queries": metrics("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        "prefix_cache_hits": metrics("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        "rejections": metrics("vllm:admission_rejections_total"),
    },
    histograms={
        "ttft": metrics("vllm:time_to_first_token_seconds"),
        "itl": metrics("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        "tpot": metrics("vllm:request_time_per_output_token_seconds"),
        "e2e": metrics("vllm:e2e_request_latency_seconds"),
        "queue_time": metrics("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests"),
    },
    copies=frozenset({"pid"}),  # 0.9.2–0.11.1 with several API servers: one series for each, most of them 0
    hint="is the engine started with --disable-log-stats?",
)
