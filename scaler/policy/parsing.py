"""From flat strings, as a trigger's metadata are, to typed settings; and every problem at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from scaler.quoting import one_line, quoted

MOST_REPLICAS = 2**31 - 1
"""Kubernetes counts replicas in 32 bits."""
MOST_PERCENT = 10_000.0
MOST = 1e12
"""No rate, count or time that is measured is more."""
LONGEST_S = 366 * 86400.0
"""A year: no window, delay or start-up is longer."""
MOST_PROBLEMS = 20
"""As many are told at once: who has more of them gave something else than settings."""
MOST_KEYS, LONGEST_VALUE = 100, 2**15
"""Far more than all settings need. Beyond it, metadata are refused as a whole, unread."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")


class SettingsError(ValueError):
    """A configuration is wrong: `problems` has one line for each fault, naming key, value and what is right.

    Of very many faults the first are told, and how many more there are.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(first_of(problems))
        super().__init__("; ".join(self.problems))


def first_of(problems: Iterable[str]) -> list[str]:
    """Return the first problems, and how many more there are."""
    told = list(problems)
    if len(told) > MOST_PROBLEMS:
        told[MOST_PROBLEMS:] = [f"and {len(told) - MOST_PROBLEMS} more"]
    return told


def parse_duration(value: object) -> float:
    """Read `300`, `300s`, `5m`, `1.5h` or `500ms` into seconds, a year at most. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value <= LONGEST_S:
            raise ValueError("not from 0 to a year")
        return float(value)
    match = _DURATION.fullmatch(str(value).strip())
    if match is None:
        raise ValueError("not a duration")
    seconds = float(match[1]) * _UNITS[match[2] or "s"]
    if seconds > LONGEST_S:
        raise ValueError("longer than a year")
    return seconds


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
        return f"{self.value:.15g}{'%' if self.percent else ''}"  # in full, as it was written


def parse_amount(value: object) -> Amount:
    """Read `2` or `10%`. Raises ValueError."""
    if isinstance(value, Amount):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", str(value).strip())
    if match is None:
        raise ValueError("neither a count nor a percentage")
    amount = Amount(float(match[1]), bool(match[2]))
    most = MOST_PERCENT if amount.percent else MOST_REPLICAS
    if amount.value > most:
        raise ValueError(f"more than {most:,.0f}{' %' if amount.percent else ''}")
    return amount


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
    first, *others = field.removesuffix("_s").split("_")
    return first + "".join(map(str.capitalize, others))  # pydantic's to_camel would make e2ESlo of e2e_slo


class Settings(BaseModel):
    """Base of all settings. `upscale_delay_s` is the key `upscaleDelay`; each field's example says what is right."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=_alias, allow_inf_nan=False, str_strip_whitespace=True
    )

    @classmethod
    def keys(cls) -> Mapping[str, FieldInfo]:
        """Metadata key → its field, with description and example."""
        return {str(field.alias): field for field in cls.model_fields.values()}


def parse_count(text: str) -> int:
    """Read a count of replicas. Raises ValueError."""
    if not text.isdecimal():
        raise ValueError("not a whole number")
    if len(text.lstrip("0")) > 10 or int(text) > MOST_REPLICAS:
        raise ValueError(f"more than {MOST_REPLICAS:,}")
    return int(text)


def parse_number(text: str) -> float:
    """Read a decimal number without exponent. Raises ValueError."""
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise ValueError("not a number")
    number = float(text)
    if abs(number) > MOST:
        raise ValueError(f"more than {MOST:g}")
    return number


T = TypeVar("T", bound=Settings)


def parse(model: type[T], metadata: Mapping[str, Any], known: Iterable[str] = ()) -> T:
    """Build `model` from metadata. `known` are keys that are no settings and may stand beside them.

    Raises SettingsError with every problem at once; an unknown key names the nearest right one.
    """
    _refuse_bulk(metadata)
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


def _refuse_bulk(metadata: Mapping[str, Any]) -> None:
    """Raise SettingsError for metadata that are too large to be meant: what reads them takes as long as they are."""
    problems = [
        f"{quoted(key)}: a value of {len(value):,} characters is wrong; right are {LONGEST_VALUE:,} at most"
        for key, value in metadata.items()
        if isinstance(value, str) and len(value) > LONGEST_VALUE
    ]
    if len(metadata) > MOST_KEYS:
        problems.append(f"{len(metadata):,} keys are wrong; right are {MOST_KEYS} at most")
    if problems:
        raise SettingsError(problems)


def _problem(detail: ErrorDetails, keys: Mapping[str, FieldInfo], known: set[str], values: Mapping[str, Any]) -> str:
    if not detail["loc"]:  # a check over several keys: its message names them
        return str(detail.get("ctx", {}).get("error", detail["msg"]))
    key = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, [*keys, *known], n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(keys))}"
        return f"{one_line(key) or quoted(key)}: unknown key; {hint}"
    if detail["type"] == "missing":
        return f"{key}: missing; for instance {key}: {_example(keys[key])}"
    message = str(detail.get("ctx", {}).get("error", "")) or detail["msg"].removeprefix("Input should be ")
    return f"{key}: {quoted(values[key])} is wrong ({message}); right is, for instance, {_example(keys[key])}"


def _example(field: FieldInfo) -> str:
    return " or ".join(repr(str(example)) for example in field.examples or ["another value"])
