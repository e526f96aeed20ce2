"""TensorRT-LLM: its own server, and Triton's TensorRT-LLM backend."""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

SERVE = Dialect(
    name="trtllm",
    prefixes=("trtllm_",),
    waiting=metrics("trtllm_num_requests_waiting"),
    running=metrics("trtllm_num_requests_running"),
    kv_cache_usage=metrics("trtllm_kv_cache_utilization"),
    counters={"requests_finished": metrics("trtllm_request_success_total")},
    histograms={
        "ttft": metrics("trtllm_time_to_first_token_seconds"),
        "itl": metrics("trtllm_time_per_output_token_seconds"),
        "e2e": metrics("trtllm_e2e_request_latency_seconds"),
        "queue_time": metrics("trtllm_request_queue_time_seconds"),
    },
    hint="the page is /prometheus/metrics, and needs return_perf_metrics: true",
)
"""`trtllm-serve`: https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve.html."""

TRITON_BACKEND = Dialect(
    name="triton-trtllm",
    prefixes=("nv_trt_llm_",),
    waiting=metrics("nv_trt_llm_request_metrics", request_type="waiting"),
    running=metrics("nv_trt_llm_request_metrics", request_type="scheduled"),
    kv_cache_usage=metrics("nv_trt_llm_kv_cache_block_metrics", kv_cache_block_type="fraction"),
    engine_labels=("model",),
)
"""https://github.com/triton-inference-server/tensorrtllm_backend#triton-metrics."""
