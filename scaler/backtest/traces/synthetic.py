"""Traffic made up for what it shows: ramps, waves, pulses, steps, on and off. A trace is an entry of `_RECIPES`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inference.simulated import Request
from inference.simulated.traffic import (
    BENCHMARK,
    CHAT,
    CODE,
    LONG_CONTEXT,
    Rate,
    RequestClass,
    arrivals,
    constant,
    on_off,
    pulse,
    ramp,
    steps,
    wave,
)
from scaler.backtest.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class _Recipe:
    rate: Rate
    duration_s: float
    mix: tuple[RequestClass, ...] = (BENCHMARK,)
    minimum: int = 1
    maximum: int = 12
    start_up_s: float = 60.0


_RECIPES: Mapping[str, _Recipe] = {
    # The ramp, the limits and the start-up time of llm-d's guide to SLO-aware autoscaling.
    "llm-d-ramp": _Recipe(
        steps([(330, 2), (360, 4), (360, 6), (360, 8), (360, 10), (360, 4), (300, 1)]),
        2430.0,
        minimum=3,
        maximum=8,
        start_up_s=100.0,
    ),
    "flat": _Recipe(constant(5.0), 2400.0),
    "ramp": _Recipe(ramp(1.0, 10.0, 1800.0), 2400.0),
    "wave": _Recipe(wave(5.0, 4.0, 1800.0), 3600.0),
    "pulse": _Recipe(pulse(0.5, 20.0, 600.0, 180.0), 1800.0),
    "steps": _Recipe(steps([(300, 1), (300, 4), (300, 8), (300, 3), (300, 10), (300, 1)]), 1800.0),
    "on-off": _Recipe(on_off(6.0, 300.0, 600.0), 3600.0, minimum=0),
    # Three kinds of requests at once: chat and code with hits in the prefix cache, and long prompts.
    "mix": _Recipe(wave(10.0, 7.0, 1800.0), 3600.0, (CHAT, CODE, LONG_CONTEXT), maximum=16),
}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The requests of a recipe. What is sent to another process is its name."""

    name: str

    def __call__(self, seed: int) -> Sequence[Request]:
        recipe = _RECIPES[self.name]
        return list(arrivals(recipe.rate, recipe.duration_s, mix=recipe.mix, seed=seed))


SYNTHETIC: Mapping[str, Trace] = {
    name: Trace(name, recipe.duration_s, _Drawn(name), recipe.minimum, recipe.maximum, recipe.start_up_s)
    for name, recipe in _RECIPES.items()
}
"""By name, with their usual limits."""
