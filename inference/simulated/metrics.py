"""What an engine has counted since it started: the numbers behind its metrics page."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

# The bucket bounds of vLLM 0.32, in seconds or in counts.
_REQUEST_LATENCY = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_TIME_TO_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_TOKEN_LATENCY = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
_STEP_TOKENS = (1.0, *(float(2**power) for power in range(3, 15)))
_REPEATS = (1.0, 2.0, 5.0, 10.0, 20.0)
_PREEMPTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)
_HTTP_FINE = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0),
    *(7.5, 10.0, 30.0, 60.0),
)
_HTTP_COARSE = (0.1, 0.5, 1.0)


def token_bounds(max_model_len: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50 … up to the model's length: vLLM's bounds for numbers of tokens."""
    bounds: list[float] = []
    decade = 1
    while decade <= max_model_len:
        bounds += [float(decade * digit) for digit in (1, 2, 5) if decade * digit <= max_model_len]
        decade *= 10
    return tuple(bounds)


class Histogram:
    """Observations by bucket. `counts` holds one number for each bound and one for all above the last."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """The sum of all observations."""

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(self.counts)

    def observe(self, value: float, times: int = 1) -> None:
        """Count `value` so many times; a value equal to a bound belongs to that bound's bucket."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def observe_rising(self, first: float, step: float, steps: int, times: int) -> None:
        """Count `first`, `first + step` … (`steps` values, `step` ≥ 0), each so many times."""
        lowest = bisect_left(self.bounds, first)
        if lowest == bisect_left(self.bounds, first + step * (steps - 1)):
            self.counts[lowest] += steps * times
            self.total += times * steps * (first + step * (steps - 1) / 2)
        else:
            for number in range(steps):
                self.observe(first + step * number, times)


def _latency() -> Histogram:
    return Histogram(_REQUEST_LATENCY)


@dataclass(slots=True)
class EngineMetrics:
    """Counters and histograms, each written at the moment at which vLLM writes it."""

    max_model_len: int

    # When a request is scheduled for the first time.
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0

    # At every step.
    preemptions: int = 0
    generation_tokens: int = 0
    busy_s: float = 0.0
    """Time spent in steps."""
    iteration_tokens: Histogram = field(default_factory=lambda: Histogram(_STEP_TOKENS))
    inter_token_latency: Histogram = field(default_factory=lambda: Histogram(_TOKEN_LATENCY))

    # At a request's first token.
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    time_to_first_token: Histogram = field(default_factory=lambda: Histogram(_TIME_TO_FIRST_TOKEN))

    # When a request finishes: those that still wait or run are in none of these.
    finished: int = 0
    e2e_latency: Histogram = field(default_factory=_latency)
    queue_time: Histogram = field(default_factory=_latency)
    prefill_time: Histogram = field(default_factory=_latency)
    decode_time: Histogram = field(default_factory=_latency)
    inference_time: Histogram = field(default_factory=_latency)
    time_per_output_token: Histogram = field(default_factory=lambda: Histogram(_TOKEN_LATENCY))
    request_preemptions: Histogram = field(default_factory=lambda: Histogram(_PREEMPTIONS))
    request_repeats: Histogram = field(default_factory=lambda: Histogram(_REPEATS))
    http_duration_fine: Histogram = field(default_factory=lambda: Histogram(_HTTP_FINE))
    http_duration_coarse: Histogram = field(default_factory=lambda: Histogram(_HTTP_COARSE))
    request_prompt_tokens: Histogram = field(init=False)
    request_generation_tokens: Histogram = field(init=False)
    request_computed_tokens: Histogram = field(init=False)

    def __post_init__(self) -> None:
        bounds = token_bounds(self.max_model_len)
        self.request_prompt_tokens = Histogram(bounds)
        self.request_generation_tokens = Histogram(bounds)
        self.request_computed_tokens = Histogram(bounds)
