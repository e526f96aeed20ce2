"""Text Generation Inference: https://huggingface.co/docs/text-generation-inference/reference/metrics.

It has no gauge for the share of its KV cache. Counters have no `_total`; tokens are the sums of histograms.
"""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

DIALECT = Dialect(
    name="tgi",
    prefixes=("tgi_",),
    waiting=metrics("tgi_queue_size"),
    running=metrics("tgi_batch_current_size"),
    counters={
        "prompt_tokens": metrics("tgi_request_input_length_sum"),
        "generation_tokens": metrics("tgi_request_generated_tokens_sum"),
        "requests_finished": metrics("tgi_request_success"),
    },
    histograms={
        "e2e": metrics("tgi_request_duration"),
        "queue_time": metrics("tgi_request_queue_duration"),
    },
    hint="a fresh TGI shows its gauges only after the first request",
)
