"""A rule is one function: a ScaledObject and the manifests beside it go in, flaws come out, its docstring says why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from scaler.cli.linting.finding import Finding, Flaw, Severity
from scaler.cli.linting.manifests import Manifest
from scaler.cli.linting.scaled_object import ScaledObject

Check = Callable[[ScaledObject, tuple[Manifest, ...]], Iterable[Flaw]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check with its name, which `--ignore` takes, and how bad what it finds is."""

    name: str
    severity: Severity
    why: str
    check: Check

    def findings(self, scaled_object: ScaledObject, manifests: tuple[Manifest, ...]) -> Iterator[Finding]:
        """Apply the rule."""
        for flaw in self.check(scaled_object, manifests):
            yield Finding(flaw.place, self.severity, self.name, scaled_object.name, flaw.what, self.why, flaw.right)


def error(check: Check) -> Rule:
    """Make a rule whose finding does harm, or is refused by KEDA or this scaler."""
    return _rule(check, Severity.ERROR)


def warning(check: Check) -> Rule:
    """Make a rule whose finding does harm in most cases."""
    return _rule(check, Severity.WARNING)


def hint(check: Check) -> Rule:
    """Make a rule whose finding is worth a thought."""
    return _rule(check, Severity.HINT)


def _rule(check: Check, severity: Severity) -> Rule:
    why = " ".join(inspect.cleandoc(check.__doc__ or "").split())
    return Rule(getattr(check, "__name__", "").replace("_", "-"), severity, why, check)
