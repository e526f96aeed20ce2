"""How many replicas traffic needs: for those who know the engine or the future.

A step lasts τ = a / (1 − ρ): the overhead `a` that every step pays, and the share ρ of time that requests take for
themselves. So a TPOT objective leaves the share 1 − a / TPOT for requests, and each of them takes `prefill_s` and
`decode_s`, while its context, prompt + output/2 tokens on average, takes room in the KV cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inference.simulated import Request
from scaler.backtest.contender import Setup
from scaler.backtest.rivals.work import Floats, decode_s, prefill_s


def ongoing(setup: Setup, use: float) -> float:
    """Return how many of the traffic's mean requests a replica holds within its objectives, at `use` of its room."""
    profile = setup.profile
    if not setup.requests:
        return float(profile.max_num_seqs)
    _, prompt, cached, output = (float(mean) for mean in _columns(setup.requests).mean(axis=1))
    context = prompt + output / 2
    work = prefill_s(profile, prompt - cached, cached) + decode_s(profile, output, context)
    in_time = _share(setup, use) / work * output * setup.tpot_slo_s  # rate · time in the engine, at the objective
    return max(1.0, min(in_time, use * profile.kv_tokens / context, profile.max_num_seqs))


def replicas(setup: Setup, use: float, smoothing_s: float) -> Floats:
    """Return how many replicas the traffic needs in each second of the run, as real numbers.

    Prefill is spread over the TTFT objective, decode over the time that the answer takes; the sum is averaged over
    `smoothing_s` around each second.
    """
    if not setup.requests:
        return np.zeros(1)
    arrival, prompt, cached, output = _columns(setup.requests)
    profile, context, busy = setup.profile, prompt + output / 2, _share(setup, use)
    started = arrival + setup.ttft_slo_s
    answered = started + output * profile.step_time.overhead_s / (1 - busy)
    length = math.ceil(answered.max()) + 1
    work = _spread(arrival, started, prefill_s(profile, prompt - cached, cached), length)
    work += _spread(arrival, answered, decode_s(profile, output, context), length)
    held = _spread(arrival, answered, context * (answered - arrival), length)
    need = np.maximum(work / busy, held / (use * profile.kv_tokens))
    width = max(1, round(smoothing_s))
    return np.convolve(need, np.full(width, 1 / width), mode="full")[(width - 1) // 2 :][:length]


def _share(setup: Setup, use: float) -> float:
    """Return the share of an engine's time that requests may take."""
    return max(0.01, use * (1 - setup.profile.step_time.overhead_s / setup.tpot_slo_s))


def _columns(requests: Sequence[Request]) -> Floats:
    rows = [(r.arrival_s, r.prompt_tokens, r.cached_tokens, r.output_tokens) for r in requests]
    return np.array(rows, dtype=np.float64).T


def _spread(start: Floats, end: Floats, amount: Floats, length: int) -> Floats:
    """Return how much falls into each second, of amounts that come evenly from start to end."""
    first, last = np.floor(start).astype(int), np.ceil(end).astype(int)
    change = np.zeros(length + 1)
    np.add.at(change, first, amount / (last - first))
    np.add.at(change, last, -amount / (last - first))
    return np.cumsum(change)[:length]
