"""The load of one replica as flat numbers, which is all that Serve's hook for autoscaling takes, and back to a load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from scaler.policy import Latency, Load

SUMS = ("waiting", "running", "arrival_rate", "completion_rate", "prompt_token_rate", "generation_token_rate")
MEANS = ("kv_cache_usage", "gpu_utilization", "tokens_per_request", "full_running")
_QUANTILES = tuple(field.name for field in fields(Latency))
_SEPARATOR = "."

Report = Mapping[str, float]
"""What one replica says of itself: a name is absent where the value is unknown. `ttft.p95` is a quantile, in s."""


def report(load: Load) -> dict[str, float]:
    """Write a replica's load down."""
    values = {name: getattr(load, name) for name in (*SUMS, *MEANS)}
    flat = {name: float(value) for name, value in values.items() if value is not None}
    for name, latency in load.latency.items():
        flat |= {f"{name}{_SEPARATOR}{quantile}": getattr(latency, quantile) for quantile in _QUANTILES}
    return flat


def is_report(values: Mapping[str, float]) -> bool:
    """Tell whether these are the numbers of a replica that reports, and not only those that Serve adds itself."""
    return "waiting" in values and "running" in values


def combined(reports: Sequence[Report], ongoing: float) -> Load:
    """Return the load of several replicas.

    `ongoing` are the requests that Serve counts, in replicas and before them: those that no replica reports wait.
    A sum is unknown where a part of it is. A quantile over all requests cannot be had from those of the replicas: it is
    their mean, weighted with the requests that each one finished; `worst_p95` is exact.
    """
    sums = {name: _sum([each.get(name) for each in reports]) for name in SUMS}
    if (waiting := sums["waiting"]) is not None and (in_engines := sums["running"]) is not None:
        sums["waiting"] = max(waiting, ongoing - in_engines)
    running = [each["running"] for each in reports if "running" in each]
    return Load(
        known=len(reports),
        unknown={},
        most_running=max(running, default=None),
        latency=_latency(reports),
        **sums,
        **{name: _mean((each[name], 1.0) for each in reports if name in each) for name in MEANS},
    )


def _latency(reports: Sequence[Report]) -> dict[str, Latency]:
    found = {}
    names = {name.partition(_SEPARATOR)[0] for each in reports for name in each if _SEPARATOR in name}
    for name in sorted(names):
        keys = [f"{name}{_SEPARATOR}{quantile}" for quantile in _QUANTILES]
        seen = [each for each in reports if all(key in each for key in keys)]
        if not seen:
            continue
        quantiles = {
            quantile: _mean((each[key], each.get("completion_rate", 0.0) or 1e-9) for each in seen) or 0.0
            for quantile, key in zip(_QUANTILES, keys, strict=True)
        }
        worst = max(each[f"{name}{_SEPARATOR}worst_p95"] for each in seen)
        found[name] = Latency(**{**quantiles, "worst_p95": worst})
    return found


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and len(known) == len(values) else None


def _mean(weighted: Iterable[tuple[float, float]]) -> float | None:
    pairs = list(weighted)
    total = math.fsum(weight for _, weight in pairs)
    return math.fsum(value * weight for value, weight in pairs) / total if pairs else None
