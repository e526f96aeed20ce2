"""Traffic made by a rate over time and a mix of request classes. The same seed gives the same requests."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from inference.simulated.request import Request


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests per second as a function of time."""

    at: Callable[[float], float]
    """Seconds since the start → requests per second; never above `peak`."""
    peak: float

    def __post_init__(self) -> None:
        if not (0 < self.peak < math.inf):
            raise ValueError(f"the highest rate is {self.peak}; it must be a number of requests/s above 0")


def constant(rate: float) -> Rate:
    """The same rate for ever."""
    return Rate(lambda _: rate, rate)


def wave(mean: float, amplitude: float, period_s: float) -> Rate:
    """A sine around `mean` that begins there and rises; cut off at 0 where `amplitude` is above `mean`."""
    _positive(period_s=period_s)
    return Rate(lambda t: max(0.0, mean + amplitude * math.sin(2 * math.pi * t / period_s)), mean + abs(amplitude))


def pulse(base: float, times: float, start_s: float, length_s: float) -> Rate:
    """`base`, but `times` as much for `length_s` from `start_s` on."""
    _positive(times=times, length_s=length_s)
    end_s = start_s + length_s
    return Rate(lambda t: base * times if start_s <= t < end_s else base, base * max(1.0, times))


def ramp(first: float, last: float, length_s: float) -> Rate:
    """A straight line from `first` to `last`, then `last` for ever."""
    _positive(length_s=length_s)
    return Rate(lambda t: first + (last - first) * min(1.0, t / length_s), max(first, last))


def steps(stages: Sequence[tuple[float, float]]) -> Rate:
    """One rate after the other, each given as (seconds, requests/s); then none."""
    ends: list[tuple[float, float]] = []
    end = 0.0
    for seconds, rate in stages:
        _positive(seconds=seconds)
        end += seconds
        ends.append((end, rate))
    return Rate(
        lambda t: next((rate for end_s, rate in ends if t < end_s), 0.0),
        max((rate for _, rate in stages), default=0.0),
    )


def on_off(rate: float, on_s: float, off_s: float, rest: float = 0.0) -> Rate:
    """`rate` for `on_s` seconds, then `rest` for `off_s` seconds, again and again."""
    _positive(on_s=on_s, off_s=off_s)
    return Rate(lambda t: rate if t % (on_s + off_s) < on_s else rest, max(rate, rest))


def _positive(**values: float) -> None:
    for key, value in values.items():
        if not value > 0:
            raise ValueError(f"{key} is {value}; it must be above 0")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Numbers of tokens: lognormal around `median`, cut off at `most`. With `sigma` 0 all are the same."""

    median: int
    sigma: float = 0.0
    """Standard deviation of the logarithm."""
    most: int = 131_072

    def draw(self, source: random.Random) -> int:
        """One number of tokens, at least 1."""
        if self.sigma == 0:
            return self.median
        return max(1, min(self.most, round(source.lognormvariate(math.log(self.median), self.sigma))))


@dataclass(frozen=True, slots=True)
class RequestClass:
    """One kind of request in a mix."""

    name: str
    prompt: Lengths
    output: Lengths
    cached_share: float = 0.0
    """Share of the prompt that the prefix cache holds, 0 to 1."""
    weight: float = 1.0
    """How often it comes, in proportion to the other classes' weights."""


# Medians and spreads of the first two: the Azure LLM inference traces of 2023 (conversation and code); of the third:
# the conversation trace of Mooncake. The shares from the prefix cache are assumptions.
CHAT = RequestClass("chat", Lengths(1020, 0.6, 14_050), Lengths(129, 0.99, 1000), cached_share=0.3)
CODE = RequestClass("code", Lengths(1500, 0.7, 7437), Lengths(13, 1.24, 1899), cached_share=0.5)
LONG_CONTEXT = RequestClass("long-context", Lengths(6909, 1.05, 123_000), Lengths(292, 0.57, 2000), cached_share=0.4)
BENCHMARK = RequestClass("benchmark", Lengths(4000), Lengths(1000))
"""4,000 prompt and 1,000 output tokens: the shape in which capacities are published."""


def arrivals(
    rate: Rate, duration_s: float, *, mix: Sequence[RequestClass] = (BENCHMARK,), seed: int = 0
) -> Iterator[Request]:
    """Requests that arrive as a Poisson process of this rate during [0, duration_s), in order of time.

    The times are drawn at the highest rate and thinned by the rate of the moment (Lewis and Shedler 1979).
    """
    source = random.Random(seed)
    weights = [kind.weight for kind in mix]
    time = source.expovariate(rate.peak)
    while time < duration_s:
        if source.random() * rate.peak < rate.at(time):
            kind = mix[0] if len(mix) == 1 else source.choices(mix, weights)[0]
            prompt = kind.prompt.draw(source)
            yield Request(time, prompt, kind.output.draw(source), kind.name, int(prompt * kind.cached_share))
        time += source.expovariate(rate.peak)
