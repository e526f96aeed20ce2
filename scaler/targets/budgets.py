"""Budgets of GPUs over several targets: what each of them may have, from what all of them wanted last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from scaler.policy.budget import Allowance, Claim, allot, tightest
from scaler.targets.target import Target
from scaler.targets.targets import Targets

_FRESH_S = 0.5
"""For so long what was allotted stands: targets tick each for itself, and every one of them asks."""
_NAMED = 3
"""Others that a text names, those of the highest priority."""

_Key = tuple[str, str]
"""Namespace and name of a ScaledObject: its triggers have one count together."""


@dataclass(frozen=True, slots=True)
class Budget:
    """GPUs that targets share, as the operator gives them."""

    name: str
    gpus: int
    priorities: Mapping[str, int]
    """By pattern of `NAMESPACE/NAME`, as a shell has them; of those that fit the longest counts. (Not the first: tools
    that write YAML sort keys.)"""

    def priority(self, namespace: str, name: str) -> int | None:
        """Return the priority of a ScaledObject, None where the budget is not for it."""
        of = f"{namespace}/{name}"
        fitting = [pattern for pattern in self.priorities if fnmatchcase(of, pattern)]
        return self.priorities[max(fitting, key=lambda pattern: (len(pattern), pattern))] if fitting else None


class _Allotted:
    """What a budget came to, at a moment of the world's clock."""

    def __init__(self, at: float, budget: Budget, claims: Mapping[_Key, Claim]) -> None:
        self.at = at
        self.granted = allot(budget.gpus, claims)
        self._budget = budget
        self._claims = claims
        self._holders = sorted(
            (key for key in claims if self.granted[key]), key=lambda key: (-claims[key].priority, key)
        )

    def text(self, key: _Key) -> str:
        """Say at which priority a target has its part, and who has others."""
        others = [other for other in self._holders[: _NAMED + 1] if other != key][:_NAMED]
        budget, priority = self._budget, self._claims[key].priority
        return ", ".join(
            [f"budget {budget.name} of {budget.gpus} GPUs at priority {priority}", *map(self._holding, others)]
        )

    def _holding(self, key: _Key) -> str:
        claim = self._claims[key]
        return f"{'/'.join(key)} has {self.granted[key] * claim.gpus} (priority {claim.priority})"


class Budgets:
    """Tells targets what they may have. One that has not decided yet has claimed nothing, and is not cut."""

    def __init__(self, targets: Targets, budgets: Sequence[Budget]) -> None:
        self._targets = targets
        self._budgets = budgets
        self._allotted: dict[str, _Allotted] = {}

    def allowance(self, target: Target) -> Allowance | None:
        """Return the tightest allowance of the target's budgets; None where no budget is for it."""
        key = target.namespace, target.name
        found = (self._of(budget) for budget in self._budgets if budget.priority(*key) is not None)
        return tightest(
            Allowance(allotted.granted[key], allotted.text(key)) for allotted in found if key in allotted.granted
        )

    def _of(self, budget: Budget) -> _Allotted:
        now, known = self._targets.world.clock.monotonic(), self._allotted.get(budget.name)
        if known is None or not 0 <= now - known.at < _FRESH_S:
            known = self._allotted[budget.name] = _Allotted(now, budget, self._claims(budget))
        return known

    def _claims(self, budget: Budget) -> Mapping[_Key, Claim]:
        claims: dict[_Key, Claim] = {}
        for target, record in self._targets.deciding():
            key = target.namespace, target.name
            if (priority := budget.priority(*key)) is None:
                continue
            before = claims.get(key)
            wanted, gpus = record.decision.claim, target.settings.gpus_per_replica
            if before is not None:
                wanted, gpus = max(wanted, before.wanted), max(gpus, before.gpus)
            claims[key] = Claim(wanted, record.observation.limits.minimum, gpus, priority)
        return claims
