"""Learning what one replica carries, from the replicas themselves."""

from __future__ import annotations

from scaler.policy.counting import number
from scaler.policy.observation import Observation
from scaler.policy.state import Capacity

_BELIEVED_S = 3.0
"""A queue shorter-lived than this is a request between two engine steps, not a full replica."""
_FORGETTING = 0.05
"""Share by which learned slots follow a lower observation each tick: long prompts leave fewer slots."""
TARGET_USE = 0.8
"""Share of its slots that a replica should use: the rest takes what arrives between two decisions."""
_ENOUGH_KV = 0.05
"""Use of the KV cache from which on the requests that run tell how many would fill it."""
_AVERAGING = 0.05
"""Weight of the newest estimate of that room: contexts grow while requests run."""


def learn(capacity: Capacity, observation: Observation) -> Capacity:
    """Return what is known of a replica's capacity after this observation."""
    load = observation.load
    carried, slots, room = max(capacity.carried, load.most_running or 0.0), capacity.slots, capacity.room
    if load.running and load.known and load.kv_cache_usage is not None and load.kv_cache_usage >= _ENOUGH_KV:
        estimate = load.running / load.known / load.kv_cache_usage
        room = estimate if room is None else room + _AVERAGING * (estimate - room)
    if load.full_running is None:
        return Capacity(carried, slots, room)
    since = observation.time if capacity.full_since is None else capacity.full_since
    if observation.time - since >= _BELIEVED_S:
        full = max(1.0, load.full_running)
        slots = full if slots is None or full > slots else slots + _FORGETTING * (full - slots)
    return Capacity(carried, slots, room, since)


def target_ongoing(capacity: Capacity) -> tuple[float, str]:
    """Return the ongoing requests that one replica should have, at least 1, and what says so.

    Until a replica was seen full, only what one carried without a queue is known to be good; and a full KV cache
    stops a replica as surely as full slots.
    """
    known = [(capacity.carried, "the most that one carried so far")]
    if capacity.slots is not None:
        known = [(TARGET_USE * capacity.slots, f"{TARGET_USE:.0%} of its {number(capacity.slots)} slots")]
    if capacity.room is not None:
        known.append(
            (TARGET_USE * capacity.room, f"{TARGET_USE:.0%} of the {number(capacity.room)} its KV cache holds")
        )
    target, source = min(known)
    return max(1.0, target), source
