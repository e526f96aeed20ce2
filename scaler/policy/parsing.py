"""From flat strings, as a trigger's metadata are, to typed settings; and every problem at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")


class SettingsError(ValueError):
    """A configuration is wrong: `problems` has one line for each fault, naming key, value and what is right."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def parse_duration(value: object) -> float:
    """Read `300`, `300s`, `5m`, `1.5h` or `500ms` into seconds. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(str(value).strip())
    if match is None:
        raise ValueError("not a duration")
    return float(match[1]) * _UNITS[match[2] or "s"]


Seconds = Annotated[float, BeforeValidator(parse_duration)]
"""Seconds, read from `300`, `300s`, `5m` …"""


@dataclass(frozen=True, slots=True)
class Amount:
    """A count of replicas, or a percentage of them: `2` or `10%`."""

    value: float
    percent: bool = False

    def of(self, replicas: float) -> float:
        """Return the amount in replicas."""
        return replicas * self.value / 100 if self.percent else self.value

    def __str__(self) -> str:
        return f"{self.value:g}{'%' if self.percent else ''}"


def parse_amount(value: object) -> Amount:
    """Read `2` or `10%`. Raises ValueError."""
    if isinstance(value, Amount):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", str(value).strip())
    if match is None:
        raise ValueError("neither a count nor a percentage")
    return Amount(float(match[1]), bool(match[2]))


@dataclass(frozen=True, slots=True)
class StepLimit:
    """How far the count may move in a period, like an HPA policy: `4/15s` or `100%/1m`."""

    amount: Amount
    period_s: float

    def __str__(self) -> str:
        return f"{self.amount}/{self.period_s:g}s"


def parse_step_limit(value: object) -> StepLimit:
    """Read `4/15s` or `100%/1m`. Raises ValueError."""
    if isinstance(value, StepLimit):
        return value
    amount, slash, period = str(value).partition("/")
    if not slash:
        raise ValueError("not an amount per period")
    limit = StepLimit(parse_amount(amount), parse_duration(period))
    if limit.period_s <= 0 or limit.amount.value <= 0:
        raise ValueError("amount and period must be above 0")
    return limit


def _alias(field: str) -> str:
    return to_camel(field.removesuffix("_s"))


class Settings(BaseModel):
    """Base of all settings. `upscale_delay_s` is the key `upscaleDelay`; each field's example says what is right."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=_alias, allow_inf_nan=False, str_strip_whitespace=True
    )

    @classmethod
    def keys(cls) -> Mapping[str, FieldInfo]:
        """Metadata key → its field, with description and example."""
        return {str(field.alias): field for field in cls.model_fields.values()}


T = TypeVar("T", bound=Settings)


def parse(model: type[T], metadata: Mapping[str, Any], known: Iterable[str] = ()) -> T:
    """Build `model` from metadata. `known` are keys that are no settings and may stand beside them.

    Raises SettingsError with every problem at once; an unknown key names the nearest right one.
    """
    known = set(known)
    keys = model.keys()
    values = {key: value for key, value in metadata.items() if key not in known}
    problems: list[str] = []
    while True:  # checks over several keys only run once each key is right: leave the wrong ones out and look again
        try:
            settings = model.model_validate(values)
        except ValidationError as error:
            details = error.errors()
            problems += [line for detail in details for line in _problem(detail, keys, known, values).splitlines()]
            wrong = {str(detail["loc"][0]) for detail in details if detail["loc"]} & values.keys()
            if wrong:
                values = {key: value for key, value in values.items() if key not in wrong}
                continue
        if problems:
            raise SettingsError(problems)
        return settings


def _problem(detail: ErrorDetails, keys: Mapping[str, FieldInfo], known: set[str], values: Mapping[str, Any]) -> str:
    if not detail["loc"]:  # a check over several keys: its message names them
        return str(detail.get("ctx", {}).get("error", detail["msg"]))
    key = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, [*keys, *known], n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(keys))}"
        return f"{key}: unknown key; {hint}"
    if detail["type"] == "missing":
        return f"{key}: missing; for instance {key}: {_example(keys[key])}"
    message = str(detail.get("ctx", {}).get("error", "")) or detail["msg"].removeprefix("Input should be ")
    return f"{key}: {values[key]!r} is wrong ({message}); right is, for instance, {_example(keys[key])}"


def _example(field: FieldInfo) -> str:
    return " or ".join(repr(str(example)) for example in field.examples or ["another value"])
