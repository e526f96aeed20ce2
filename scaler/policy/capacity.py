"""Learning what one replica carries, from the replicas themselves."""

from __future__ import annotations

from scaler.policy.observation import Observation
from scaler.policy.state import Capacity

_BELIEVED_S = 3.0
"""A queue shorter-lived than this is a request between two engine steps, not a full replica."""
_FORGETTING = 0.05
"""Share by which learned slots follow a lower observation each tick: long prompts leave fewer slots."""
TARGET_USE = 0.8
"""Share of its slots that a replica should use: the rest takes what arrives between two decisions."""


def learn(capacity: Capacity, observation: Observation) -> Capacity:
    """Return what is known of a replica's capacity after this observation."""
    load = observation.load
    carried = max(capacity.carried, load.most_running or 0.0)
    if load.full_running is None:
        return Capacity(carried, capacity.slots)
    since = observation.time if capacity.full_since is None else capacity.full_since
    slots = capacity.slots
    if observation.time - since >= _BELIEVED_S:
        full = max(1.0, load.full_running)
        slots = full if slots is None or full > slots else slots + _FORGETTING * (full - slots)
    return Capacity(carried, slots, since)


def target_ongoing(capacity: Capacity) -> float:
    """Return the ongoing requests that one replica should have; at least 1.

    Until a replica was seen full, what it carried without a queue is what it can carry.
    """
    if capacity.slots is not None:
        return max(1.0, TARGET_USE * capacity.slots)
    return max(1.0, capacity.carried)
