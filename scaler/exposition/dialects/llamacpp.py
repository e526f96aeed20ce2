"""llama.cpp's server, started with `--metrics`: one engine, no labels, no KV cache gauge (it was removed)."""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

DIALECT = Dialect(
    name="llamacpp",
    prefixes=("llamacpp:",),
    waiting=metrics("llamacpp:requests_deferred"),
    running=metrics("llamacpp:requests_processing"),
    counters={
        "prompt_tokens": metrics("llamacpp:prompt_tokens_total"),
        "generation_tokens": metrics("llamacpp:tokens_predicted_total"),
    },
)
