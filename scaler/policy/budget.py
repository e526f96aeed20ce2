"""A budget of GPUs that several targets share: who gets how much when they cannot all have what they want."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


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
    taken = 0
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


def _turn(target: T, claim: Claim, granted: int, order: int) -> tuple[float, int, T]:
    return granted / max(1, claim.wanted), order, target


def tightest(allowances: Iterable[Allowance]) -> Allowance | None:
    """Return the one that allows least, None of none."""
    return min(allowances, key=lambda allowance: allowance.replicas, default=None)
