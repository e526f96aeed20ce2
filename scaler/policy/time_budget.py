"""What a replica's busy seconds go to: steps of the engine, tokens that it generates, and prompt tokens that it reads.

An engine generates one token for each running request in a step. A step takes a time by itself (reading the weights),
more for each request in it, and more for the prompt tokens of newcomers. So every second in which something runs obeys

    1 = step_s · steps + token_s · tokens + prompt_token_s · prompt tokens        (all three per second)

where steps = tokens ÷ requests running. The three costs are found by least squares over the seconds that were seen.
A surge of newcomers or a queue that drains bends what one token takes at the moment, but not these costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_DOUBT = (0.02, 0.0, 0.001)
"""By cost: how strongly it is drawn to 0, as a share of its own evidence. While load varies too little to tell them
apart, steps come for free, so that each request beside costs in full: nothing is promised that was not seen."""
_COSTS = len(_DOUBT)


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """Sums of the least squares, over busy seconds that fade."""

    seconds: float = 0.0
    """Busy seconds that count."""
    products: tuple[float, ...] = (0.0,) * _COSTS * _COSTS
    sums: tuple[float, ...] = (0.0,) * _COSTS

    def add(self, steps: float, tokens: float, prompt_tokens: float, *, seconds: float, memory: float) -> TimeBudget:
        """Add busy seconds of a replica with these rates, per second; older ones lose e^(−seconds ÷ memory)."""
        rates, kept = (steps, tokens, prompt_tokens), math.exp(-seconds / memory)
        newest = [seconds * one * other for one in rates for other in rates]
        return TimeBudget(
            kept * self.seconds + seconds,
            tuple(kept * old + new for old, new in zip(self.products, newest, strict=True)),
            tuple(kept * old + seconds * rate for old, rate in zip(self.sums, rates, strict=True)),
        )

    def costs(self) -> tuple[float, ...]:
        """Return seconds per step, per token and per prompt token; none is below 0, and what was not seen is 0."""
        rows = [list(self.products[i : i + _COSTS]) for i in range(0, len(self.products), _COSTS)]
        for i, doubt in enumerate(_DOUBT):
            rows[i][i] *= 1 + doubt
        seen = [i for i in range(_COSTS) if rows[i][i] > 0]
        costs = [0.0] * _COSTS
        while seen:
            found = np.linalg.solve([[rows[i][j] for j in seen] for i in seen], [self.sums[i] for i in seen]).tolist()
            if min(found) >= 0:
                for i, cost in zip(seen, found, strict=True):
                    costs[i] = cost
                break
            seen.pop(found.index(min(found)))
        return tuple(costs)

    def pace(self, prompt_tokens: float) -> tuple[float, float] | None:
        """Return seconds per generated token of a request: by itself, and for each request that runs in the replica.

        `prompt_tokens` come with each generated token. None before anything was seen.
        """
        if not self.products[_COSTS + 1]:
            return None
        step_s, token_s, prompt_token_s = self.costs()
        return step_s, token_s + prompt_token_s * prompt_tokens
