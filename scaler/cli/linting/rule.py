"""A rule is one function: a ScaledObject and the manifests beside it go in, flaws come out, its docstring says why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from scaler.cli.linting.finding import Finding, Flaw, Severity
from scaler.cli.linting.manifests import Manifests
from scaler.cli.linting.scaled_object import ScaledObject
from scaler.quoting import one_line

_LONGEST = 1000
"""Characters of what is told of one flaw: manifests may hold anything."""

Check = Callable[[ScaledObject, Manifests], Iterable[Flaw]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check with its name, which `--ignore` takes, and how bad what it finds is."""

    name: str
    severity: Severity
    why: str
    check: Check

    def findings(self, scaled_object: ScaledObject, manifests: Manifests) -> Iterator[Finding]:
        """Apply the rule."""
        for flaw in self.check(scaled_object, manifests):
            name, what, right = (one_line(text, _LONGEST) for text in (scaled_object.name, flaw.what, flaw.right))
            yield Finding(flaw.place, self.severity, self.name, name, what, self.why, right)


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
