"""What a rule finds, and what the reader of the report is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is: an error does harm or is refused, a warning mostly does, a hint is worth a thought."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Flaw:
    """What a rule yields: where, what is wrong there, and what would be right. The rule knows why."""

    place: Place
    what: str
    right: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A flaw with everything that the report says about it."""

    place: Place
    severity: Severity
    rule: str
    name: str
    """NAMESPACE/NAME of the ScaledObject; empty where a file cannot be read."""
    what: str
    why: str
    right: str
