"""The engines that are understood. A new one is one new file and one line here."""

from __future__ import annotations

from collections.abc import Mapping

from scaler.exposition.dialect import Dialect
from scaler.exposition.dialects import llamacpp, lmdeploy, nim, ray, sglang, tgi, triton, trtllm, vllm

ENGINES: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        vllm.DIALECT,
        ray.DIALECT,
        sglang.DIALECT,
        tgi.DIALECT,
        llamacpp.DIALECT,
        trtllm.SERVE,
        trtllm.TRITON_BACKEND,  # before Triton's own metrics, which are on the same page
        triton.DIALECT,
        lmdeploy.DIALECT,
        nim.DIALECT,  # last: its names have no prefix
    )
}
"""Name → dialect, in the order in which a page is tried for them."""
