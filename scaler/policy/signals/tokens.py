"""Tokens: prompt and generated tokens per second ÷ what one replica should do."""

from __future__ import annotations

from scaler.policy.capacity import Capacity
from scaler.policy.counting import number
from scaler.policy.observation import Observation
from scaler.policy.settings import PolicySettings
from scaler.policy.signals.demand import Demand


def demand(settings: PolicySettings, _: Capacity, observation: Observation) -> Demand | None:
    """Demand by `target_tokens_per_second`.

    Replicas that are full do no more tokens than they can, however many requests arrive: the rate of arrivals
    over the rate of completions says what they would have to do.
    """
    load, target = observation.load, settings.target_tokens_per_second
    if load.prompt_token_rate is None or load.generation_token_rate is None or target is None:
        return None
    rate = load.prompt_token_rate + load.generation_token_rate
    pressure = 1.0
    if load.waiting and load.arrival_rate and load.completion_rate:
        pressure = max(1.0, load.arrival_rate / load.completion_rate)
    return Demand(
        rate * pressure / target,
        f"{number(rate)} tokens/s × {number(pressure)} (arrivals ÷ completions) ÷ {number(target)} a replica",
        backlog=rate * (pressure - 1) / target,
    )
