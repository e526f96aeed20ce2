"""What a load will be one start-up time from now: simple forecasts, and a margin from how wrong they were so far.

Nothing is assumed about the traffic. Every forecaster is tried on the past of this very target: what it said one
horizon ago is held against what came. Its margin is the least with which only a small share of that load would have
come on top, and the forecaster whose forecasts and margin are cheapest speaks.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

Forecaster = Callable[[Sequence[float], float, float], float]

_STEPS_IN_HORIZON = 20
_STEP_S = (1.0, 15.0)
"""The shortest and the longest step in which the load's past is kept."""
_LONGEST_WINDOW_S = 240.0
_LEVEL_S = 20.0
_REMEMBERED = 240
"""Forecasts that are held against what came: those of the last twelve horizons."""
_ENOUGH = 12
"""With fewer, arrivals get the margin that chance alone would need, one standard deviation (Poisson), others none."""

_MEDIAN_DIFFERENCE = 0.954
"""The median distance of two draws from a normal distribution with a standard deviation of 1."""


def _numbers(values: Sequence[float] = ()) -> array[float]:
    """Return numbers in single precision, for the little memory that a thousand targets' pasts should take."""
    return array("f", values)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is to be expected, and to be provided for."""

    value: float
    """With the margin."""
    expected: float
    by: str
    """The forecaster that spoke, in words."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of a load: its past, forecasts that are not due yet, and the errors of those that were."""

    arrivals: bool = False
    """Whether the load is requests per second."""
    step_s: float = 0.0
    begun: float | None = None
    """When the present step began."""
    sum: float = 0.0
    count: int = 0
    """Of the values in the present step."""
    past: tuple[float, ...] = ()
    """The means of the steps before, oldest first."""
    pending: tuple[tuple[float, ...], ...] = ()
    """What each forecaster said, at each of the last steps, for one horizon later."""
    came: array[float] = field(default_factory=_numbers)
    """The load that came, at each step for which there had been a forecast."""
    errors: tuple[array[float], ...] = ()
    """By forecaster: how much more came at these steps than it had said."""
    forecast: Forecast | None = None


def follow(
    record: Record,
    time: float,
    load: float,
    *,
    arrivals: bool,
    horizon_s: float,
    window_s: float,
    allowed_excess: float,
) -> Record:
    """Take in the load at `time` and return the record with a new forecast in it.

    `arrivals` tells whether the load is requests per second. `window_s` is over how long an excess has to last to
    hurt: what came is averaged over it. `allowed_excess` is the share of the load, 0 to 1, that may come on top of
    what was provided for. Another kind of load, or a horizon that changed by much, begins a new record, since the
    errors of another one say nothing.
    """
    step = min(_STEP_S[1], max(_STEP_S[0], horizon_s / _STEPS_IN_HORIZON))
    if record.begun is None or record.arrivals != arrivals:
        return Record(arrivals, step, time, load, 1)
    if abs(record.step_s - step) > 0.3 * step:
        return Record(arrivals, step, time, load, 1, forecast=record.forecast)
    if time - record.begun < record.step_s:
        return replace(record, sum=record.sum + load, count=record.count + 1)
    step = record.step_s
    longest = math.ceil(max(_LONGEST_WINDOW_S, horizon_s) / step)
    past = (*record.past, record.sum / record.count)[-longest:]
    said = tuple(forecaster(past, step, horizon_s) for forecaster in FORECASTERS.values())
    pending, came, errors = (*record.pending, said), record.came, record.errors or (_numbers(),) * len(said)
    if len(pending) > max(1, round(horizon_s / step)):
        actual, then, pending = _mean(past, step, window_s), pending[0], pending[1:]
        came = _with(came, actual)
        errors = tuple(_with(each, actual - guess) for each, guess in zip(errors, then, strict=True))
    if len(came) >= _ENOUGH:
        forecast = _cheapest(said, errors, allowed_excess * math.fsum(came) / len(came))
    else:
        guess = said[_FIRST]
        chance = math.sqrt(guess / window_s) if arrivals else 0.0
        forecast = Forecast(guess + chance, guess, _NAMES[_FIRST])
    return Record(arrivals, step, time, load, 1, past, pending, came, errors, forecast)


def scatter(record: Record, apart_s: float) -> float:
    """Return by how much values of the past that are so far apart differ from one another for no reason.

    It is a standard deviation, told by the median of their differences, which a jump or a slope hardly moves.
    """
    lag = max(1, math.ceil(apart_s / record.step_s)) if record.step_s else 1
    differences = [abs(late - early) for early, late in zip(record.past, record.past[lag:], strict=False)]
    return median(differences) / _MEDIAN_DIFFERENCE if len(differences) >= _ENOUGH else 0.0


def _with(numbers: array[float], newest: float) -> array[float]:
    return numbers[-_REMEMBERED + 1 :] + _numbers((newest,))


def _cheapest(said: Sequence[float], errors: Sequence[Sequence[float]], allowed: float) -> Forecast:
    """Choose the forecaster that would have provided least, on average, for no more excess than is allowed."""
    margins = [least_margin(each, allowed) for each in errors]
    # A forecaster's mean is the mean of what came less that of its errors; the first is the same for all.
    costs = [margin - math.fsum(each) / len(each) for margin, each in zip(margins, errors, strict=True)]
    i = costs.index(min(costs))
    return Forecast(said[i] + margins[i], said[i], _NAMES[i])


def least_margin(errors: Sequence[float], allowed: float) -> float:
    """Return the least margin ≥ 0 over which the errors stand out by no more than `allowed`, on average over all.

    Counting the excess weighs a short wave that doubles the load as it weighs on people, where a quantile of the
    time would not see it at all.
    """
    most = allowed * len(errors)
    total, above = 0.0, sorted((error for error in errors if error > 0), reverse=True)
    for count, error in enumerate(above):
        if total - count * error > most:
            return (total - most) / count
        total += error
    return max(0.0, (total - most) / len(above)) if above else 0.0


def _mean(past: Sequence[float], step: float, window_s: float) -> float:
    part = past[-max(1, round(window_s / step)) :]
    return math.fsum(part) / len(part)


def _line(past: Sequence[float], step: float, window_s: float, horizon_s: float) -> float:
    """Carry the least-squares line through the window on to the horizon; no load is below 0."""
    part = past[-max(4, round(window_s / step)) :]
    n = len(part)
    mean, middle = math.fsum(part) / n, (n - 1) / 2
    if n < 4:
        return mean
    slope = math.fsum((i - middle) * load for i, load in enumerate(part)) / (n * (n * n - 1) / 12)
    return max(0.0, mean + slope * (middle + horizon_s / step))


FORECASTERS: Mapping[str, Forecaster] = {
    "mean of 3 min": lambda past, step, _: _mean(past, step, 180.0),
    "mean of 1 min": lambda past, step, _: _mean(past, step, 60.0),
    "level": lambda past, step, _: _mean(past, step, _LEVEL_S),
    "line through 1 min": lambda past, step, horizon_s: _line(past, step, 60.0, horizon_s),
    "line through 2 min": lambda past, step, horizon_s: _line(past, step, 120.0, horizon_s),
    "line through 4 min": lambda past, step, horizon_s: _line(past, step, 240.0, horizon_s),
}
"""Name → what it makes of the past, a step and a horizon in seconds."""
_NAMES = tuple(FORECASTERS)
_FIRST = _NAMES.index("mean of 1 min")
"""Who speaks while nothing is known of anybody's errors."""
