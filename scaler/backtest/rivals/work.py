"""How much of an engine's time a request takes, from the engine's own step times."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from inference.simulated import Profile

Floats = NDArray[np.float64]
A = TypeVar("A", float, Floats)


def prefill_s(profile: Profile, tokens: A, cached: A) -> A:
    """Return the engine time that a prompt takes: `tokens` to compute after `cached` ones."""
    pairs = tokens * (cached + (tokens + 1) / 2)
    return tokens * profile.step_time.per_prompt_token_s + pairs * profile.step_time.per_attention_pair_s


def decode_s(profile: Profile, output: A, context: A) -> A:
    """Return the engine time that the tokens of an answer take, with so many tokens in context on average."""
    return output * (context * profile.step_time.per_kv_token_s + profile.step_time.per_sequence_s)
