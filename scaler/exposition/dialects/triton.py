"""Triton's own metrics, of any backend: https://github.com/triton-inference-server/server, docs/user_guide/metrics.md.

It counts the requests that are pending, and has no gauge for those that run. Requests of an ensemble's members are
counted once for each member.
"""

from __future__ import annotations

from scaler.exposition.dialect import Dialect, metrics

DIALECT = Dialect(
    name="triton",
    prefixes=("nv_inference_",),
    waiting=metrics("nv_inference_pending_request_count"),
    counters={"requests_finished": metrics("nv_inference_request_success")},
    engine_labels=("model",),
)
