"""Label selectors: read from an object's LabelSelector or from text, and matched against labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from scaler.quoting import quoted


class Operator(StrEnum):
    """How a requirement looks at the value of its label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy it. A label that is absent satisfies NotIn, as in Kubernetes."""
        match self.operator:
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions that must all hold."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.holds(labels) for requirement in self.requirements)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The labels that every selected object has: what an index can look up."""
        return tuple(
            (requirement.key, next(iter(requirement.values)))
            for requirement in self.requirements
            if requirement.operator is Operator.IN and len(requirement.values) == 1
        )


def selector_of(label_selector: Mapping[str, Any]) -> Selector:
    """Read a LabelSelector (`matchLabels` and `matchExpressions`). Raises ValueError."""
    equal = (Requirement(k, Operator.IN, frozenset({v})) for k, v in (label_selector.get("matchLabels") or {}).items())
    expressions = (
        Requirement(e["key"], Operator(e["operator"]), frozenset(e.get("values") or ()))
        for e in label_selector.get("matchExpressions") or ()
    )
    return Selector((*equal, *expressions))


_TERM = re.compile(
    r"""\s*(?:
        !\s*(?P<absent>[^\s!=,()]+)
      | (?P<key>[^\s!=,()]+)\s*(?:
            (?P<sign>==|!=|=)\s*(?P<value>[^\s!=,()]*)
          | \s(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


@lru_cache(maxsize=4096)
def parse_selector(text: str) -> Selector:
    """Read `app=llama,tier in (gpu, big),!canary`, as `/scale` reports its pods. Raises ValueError."""
    requirements: list[Requirement] = []
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise ValueError(f"label selector {quoted(text)} cannot be read from {quoted(text[position:])} on")
        requirements.append(_requirement(term))
        position = term.end()
    return Selector(tuple(requirements))


def _requirement(term: re.Match[str]) -> Requirement:
    if absent := term["absent"]:
        return Requirement(absent, Operator.DOES_NOT_EXIST)
    if term["set"]:
        values = frozenset(value.strip() for value in term["values"].split(","))
        return Requirement(term["key"], Operator.IN if term["set"] == "in" else Operator.NOT_IN, values)
    if term["sign"]:
        operator = Operator.NOT_IN if term["sign"] == "!=" else Operator.IN
        return Requirement(term["key"], operator, frozenset({term["value"]}))
    return Requirement(term["key"], Operator.EXISTS)
