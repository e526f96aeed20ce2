"""How much of an engine's time a request takes, and how long it takes alone, from the engine's own step times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from inference.simulated import Profile, Request

Floats = NDArray[np.float64]
A = TypeVar("A", float, Floats)


def prefill_s(profile: Profile, tokens: A, cached: A) -> A:
    """Return the engine time that a prompt takes: `tokens` to compute after `cached` ones."""
    pairs = tokens * (cached + (tokens + 1) / 2)
    return tokens * profile.step_time.per_prompt_token_s + pairs * profile.step_time.per_attention_pair_s


def decode_s(profile: Profile, output: A, context: A) -> A:
    """Return the engine time that the tokens of an answer take, with so many tokens in context on average."""
    return output * (context * profile.step_time.per_kv_token_s + profile.step_time.per_sequence_s)


def columns(requests: Sequence[Request]) -> Floats:
    """Return four rows: arrival (seconds), prompt, cached and output tokens of each request."""
    rows = [(r.arrival_s, r.prompt_tokens, r.cached_tokens, r.output_tokens) for r in requests]
    return np.array(rows, dtype=np.float64).reshape(-1, 4).T


def feasible(profile: Profile, requests: Sequence[Request], ttft_slo_s: float, tpot_slo_s: float) -> NDArray[np.bool_]:
    """Tell of each request whether it would meet both objectives alone on an idle replica of even pace."""
    _, prompt, cached, output = columns(requests)
    step, size = profile.step_time, profile.block_size
    each_step = step.overhead_s + step.per_sequence_s
    hit = np.minimum(cached, prompt - 1) // size * size  # whole blocks, and never the last token
    chunks = np.ceil((prompt - hit) / profile.max_num_batched_tokens)
    ttft = chunks * each_step + prefill_s(profile, prompt - hit, hit)
    tpot = np.where(output > 1, each_step + step.per_kv_token_s * (prompt + output / 2), 0.0)
    fits = prompt + output <= min(profile.max_model_len, profile.kv_tokens)
    met: NDArray[np.bool_] = (ttft <= ttft_slo_s) & (tpot <= tpot_slo_s) & fits
    return met
