"""A budget of GPUs that several targets share: who gets how much when they cannot all have what they want."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

_HALVINGS = 20
"""Steps of a search, to a millionth of what is wanted."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one target wants of a budget. Counts are replicas."""

    wanted: int
    minimum: int
    """What it is to have whatever else: the ScaledObject's minimum."""
    gpus: int = 1
    """Of one replica."""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a target may have of a budget."""

    replicas: int
    text: str
    """Which budget, and who else wants of it."""


def allot(gpus: int, claims: Mapping[T, Claim]) -> Mapping[T, int]:
    """Return how many replicas each target may have of a budget of so many GPUs.

    Minimums come first: they are the ScaledObjects', and KEDA keeps them anyway. What is left goes to the highest
    priority as far as it wants, then to the next; among equals each replica goes to whoever has the smallest part of
    what it wants, so that nobody is left with nothing. Nobody gets more than it wants, or less than its minimum.
    """
    granted = {target: claim.minimum for target, claim in claims.items()}
    left = gpus - sum(claim.gpus * claim.minimum for claim in claims.values())
    by_priority = sorted(claims, key=lambda target: -claims[target].priority)
    for _, group in groupby(by_priority, key=lambda target: claims[target].priority):
        left -= _share(left, {target: claims[target] for target in group}, granted)
    return granted


def _share(left: int, claims: Mapping[T, Claim], granted: dict[T, int]) -> int:
    """Grant what is left to equals, and return how many GPUs that took."""
    taken = _raise(left, claims, granted)
    queue = [_turn(target, claims[target], granted[target], i) for i, target in enumerate(claims)]
    heapq.heapify(queue)
    while queue:
        _, order, target = heapq.heappop(queue)
        claim = claims[target]
        if granted[target] < claim.wanted and taken + claim.gpus <= left:
            granted[target] += 1
            taken += claim.gpus
            heapq.heappush(queue, _turn(target, claim, granted[target], order))
    return taken


def _raise(left: int, claims: Mapping[T, Claim], granted: dict[T, int]) -> int:
    """Grant equals the greatest part of their wants that is there for all, but for a few replicas, as turns would.

    Returns how many GPUs that took. Turn by turn it would be seconds for budgets that nobody has, but may write down.
    """

    def cost(part: float, less: int = 0) -> int:
        return sum(claim.gpus * (at(target, part, less) - granted[target]) for target, claim in claims.items())

    def at(target: T, part: float, less: int) -> int:
        return max(granted[target], ceil(part * claims[target].wanted) - less)

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= left else (low, middle)
    taken = cost(low, less=1)  # one less than that part, for its turns may round to another order
    granted.update({target: at(target, low, less=1) for target in claims})
    return taken


def _turn(target: T, claim: Claim, granted: int, order: int) -> tuple[float, int, T]:
    return granted / max(1, claim.wanted), order, target


def tightest(allowances: Iterable[Allowance]) -> Allowance | None:
    """Return the one that allows least, None of none."""
    return min(allowances, key=lambda allowance: allowance.replicas, default=None)
