"""How many replicas traffic needs: for those who know the engine or the future.

A step lasts τ = a / (1 − ρ): the overhead `a` that every step pays, and the share ρ of time that requests take for
themselves, `prefill_s` and `decode_s` each. A TPOT objective allows ρ = 1 − a / TPOT. But answers take τ for each token
and hold KV room all the while, so a fuller engine needs more room: ρ is best where time and room are used up together.
"""

from __future__ import annotations

import math

import numpy as np

from scaler.backtest.contender import Setup
from scaler.backtest.work import Floats, columns, decode_s, prefill_s


def ongoing(setup: Setup, use: float) -> float:
    """Return how many of the traffic's mean requests a replica holds within its objectives, at `use` of its room."""
    if not setup.requests:
        return float(setup.profile.max_num_seqs)
    work, output, context = _mean(setup)
    in_time = _in_time(setup) / work * output * setup.tpot_slo_s  # rate · time in the engine, at the objective
    return max(1.0, use * min(in_time, setup.profile.kv_tokens / context, setup.profile.max_num_seqs))


def replicas(setup: Setup, use: float, smoothing_s: float) -> Floats:
    """Return how many replicas the traffic needs in each second of the run, as real numbers, at `use` of their room.

    Prefill is spread over the TTFT objective, decode over the time that the answer takes; the sum is averaged over
    `smoothing_s` around each second.
    """
    if not setup.requests:
        return np.zeros(1)
    arrival, prompt, cached, output = columns(setup.requests)
    profile, context, busy = setup.profile, prompt + output / 2, _busy(setup, use)
    life = output * token_s(setup, use)
    prefilled, answered = arrival + setup.ttft_slo_s, arrival + life
    length = math.ceil(max(prefilled.max(), answered.max())) + 1
    work = _spread(arrival, prefilled, prefill_s(profile, prompt - cached, cached), length)
    work += _spread(arrival, answered, decode_s(profile, output, context), length)
    held = _spread(arrival, answered, context * life, length)
    need = np.maximum(work / busy, held / (use * profile.kv_tokens))
    width = max(1, round(smoothing_s))
    return np.convolve(need, np.full(width, 1 / width))[(width - 1) // 2 :][:length]


def token_s(setup: Setup, use: float) -> float:
    """Return how long one output token takes in an engine that is used as much as it should be."""
    return setup.profile.step_time.overhead_s / (1 - _busy(setup, use))


def _busy(setup: Setup, use: float) -> float:
    """Return the share of an engine's time that requests should take."""
    work, output, context = _mean(setup)
    room = output * setup.profile.step_time.overhead_s * context / (use * setup.profile.kv_tokens)
    return min(use * _in_time(setup), work / (work + room))  # the second: work / ρ = room / (1 − ρ)


def _in_time(setup: Setup) -> float:
    """Return the share of an engine's time that the TPOT objective leaves to requests."""
    return max(0.01, 1 - setup.profile.step_time.overhead_s / setup.tpot_slo_s)


def _mean(setup: Setup) -> tuple[float, float, float]:
    """Return the engine seconds, output tokens and mean context of the traffic's mean request."""
    _, prompt, cached, output = (float(mean) for mean in columns(setup.requests).mean(axis=1))
    context = prompt + output / 2
    return prefill_s(setup.profile, prompt - cached, cached) + decode_s(setup.profile, output, context), output, context


def _spread(start: Floats, end: Floats, amount: Floats, length: int) -> Floats:
    """Return how much falls into each second, of amounts that come evenly from start to end."""
    first, last = np.floor(start).astype(int), np.ceil(end).astype(int)
    change = np.zeros(length + 1)
    np.add.at(change, first, amount / (last - first))
    np.add.at(change, last, -amount / (last - first))
    return np.cumsum(change)[:length]
