"""SGLang, started with `--enable-metrics`: https://docs.sglang.ai/references/production_metrics.html."""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

DIALECT = Dialect(
    name="sglang",
    prefixes=("sglang:",),
    waiting=metrics("sglang:num_queue_reqs"),
    running=metrics("sglang:num_running_reqs"),
    kv_cache_usage=metrics("sglang:token_usage"),
    counters={
        "prompt_tokens": metrics("sglang:prompt_tokens_total"),
        "generation_tokens": metrics("sglang:generation_tokens_total"),
        "requests_finished": metrics("sglang:num_requests_total"),
    },
    histograms={
        "ttft": metrics("sglang:time_to_first_token_seconds"),
        "itl": metrics("sglang:inter_token_latency_seconds"),
        "e2e": metrics("sglang:e2e_request_latency_seconds"),
        "queue_time": metrics("sglang:queue_time_seconds"),
    },
    engine_labels=("dp_rank",),
    copies=frozenset({"tp_rank", "pp_rank", "moe_ep_rank"}),  # with --enable-metrics-for-all-schedulers
    total_label="priority",  # with priority scheduling: one series for each, and one with priority=""
    hint="a fresh SGLang shows nothing before its first log line; is it started with --enable-metrics?",
)
