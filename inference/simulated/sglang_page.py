"""The metrics page of a simulated engine as SGLang 0.5 serves it with `--enable-metrics`: what scalers read of it.

A ready SGLang has answered its own warm-up request, so the gauges are there from the start. The buckets are vLLM's:
SGLang's can be set by its operator anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import accumulate

from inference.simulated.engine import Engine
from inference.simulated.metrics import EngineMetrics, Histogram
from inference.simulated.page import number

_GAUGES: dict[str, Callable[[Engine], float]] = {
    "sglang:num_running_reqs": lambda e: e.running,
    "sglang:num_queue_reqs": lambda e: e.waiting,
    "sglang:token_usage": lambda e: e.kv_cache_usage,
}
_COUNTERS: dict[str, Callable[[Engine], float]] = {
    "sglang:prompt_tokens_total": lambda e: e.metrics.prompt_tokens,
    "sglang:generation_tokens_total": lambda e: e.metrics.generation_tokens,
    "sglang:num_requests_total": lambda e: e.metrics.finished,
}
_HISTOGRAMS: dict[str, Callable[[EngineMetrics], Histogram]] = {
    "sglang:time_to_first_token_seconds": lambda m: m.time_to_first_token,
    "sglang:inter_token_latency_seconds": lambda m: m.inter_token_latency,
    "sglang:e2e_request_latency_seconds": lambda m: m.e2e_latency,
    "sglang:queue_time_seconds": lambda m: m.queue_time,
}


class SglangPage:
    """The page of one engine on one rank."""

    def __init__(self, engine: Engine, *, model_name: str) -> None:
        self._engine = engine
        name = model_name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        self._labels = f'engine_type="unified",model_name="{name}",moe_ep_rank="0",pp_rank="0",tp_rank="0"'

    def render(self) -> str:
        """The whole page."""
        return "".join(f"{line}\n" for line in self._lines())

    def render_only(self, names: Collection[str]) -> str:  # noqa: ARG002 the same for all names
        """Nothing: SGLang's processes keep their metrics in files, and a filtered read of those is empty."""
        return ""

    def _lines(self) -> Iterator[str]:
        for kind, family in (("gauge", _GAUGES), ("counter", _COUNTERS)):
            for name, read in family.items():
                yield f"# TYPE {name} {kind}"
                yield f"{name}{{{self._labels}}} {number(read(self._engine))}"
        for name, choose in _HISTOGRAMS.items():
            histogram = choose(self._engine.metrics)
            yield f"# TYPE {name} histogram"
            bounds = [*map(number, histogram.bounds), "+Inf"]
            for bound, below in zip(bounds, accumulate(histogram.counts), strict=True):
                yield f'{name}_bucket{{{self._labels},le="{bound}"}} {number(below)}'
            yield f"{name}_count{{{self._labels}}} {number(histogram.count)}"
            yield f"{name}_sum{{{self._labels}}} {number(histogram.total)}"
