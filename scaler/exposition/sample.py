"""What one metrics page said at one moment: the words that every dialect translates into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram as the page shows it, summed over the page's engines.

    `bounds` are upper bounds in seconds, ascending, the last one `inf`; `counts[i]` is how many observations
    were ≤ `bounds[i]` since the engine started; `sum` is the sum of all observations in seconds.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of one engine, or of a whole page (then the sum, or for ratios the mean, over its engines).

    A value that is None is *unknown*, and `unknown` says why under the same name. A name that is in neither
    is one that this engine does not offer. Unknown is never zero.
    """

    waiting: float | None = None
    """Requests that wait to be scheduled."""
    running: float | None = None
    """Requests in the running batch."""
    kv_cache_usage: float | None = None
    """Share of the KV cache in use, 0 to 1."""
    waiting_deferred: float | None = None
    """Part of `waiting` that more replicas do not relieve (KV transfer, LoRA slots); a subset of `waiting`."""
    asleep: bool = False
    """The engine sleeps: its weights are away, so it does not serve although the pod is ready."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Counters since the engine's start, named in `COUNTERS`."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    """Latency histograms in seconds, named in `HISTOGRAMS`."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Name → why the value could not be had."""


@dataclass(frozen=True, slots=True)
class Sample(Reading):
    """A whole page: its totals, and the same for each engine on it."""

    engine: str = ""
    """The dialect that read the page, say `vllm`."""
    page_bytes: int = field(default=0, compare=False)
    """Size of the page that was read."""
    engines: Mapping[str, Reading] = field(default_factory=dict)
    """Engine label (say `0`) → its own values; one entry for a page with a single engine."""


COUNTERS = (
    "prompt_tokens",
    "generation_tokens",
    "requests_finished",
    "preemptions",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "rejections",
)
"""Tokens, tokens, requests, events, tokens, tokens, requests: monotonic since the engine's start."""

HISTOGRAMS = ("ttft", "itl", "tpot", "e2e", "queue_time")
"""Time to first token, inter-token latency, a request's mean time per output token, end-to-end latency and time in the
queue, all in seconds."""


class PageError(ValueError):
    """The page is no engine's page: its message says what was found and what to check. Never an idle engine."""
