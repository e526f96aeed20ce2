"""What Ray Serve tells a policy at one moment, made of plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class Value:
    value: float


@dataclass
class Moment:
    """Implements `inference.autoscaling.Context`."""

    current_time: float | None = 0.0
    current_num_replicas: int = 1
    target_num_replicas: int = 1
    total_num_requests: float = 0.0
    total_queued_requests: float = 0.0
    capacity_adjusted_min_replicas: int = 1
    capacity_adjusted_max_replicas: int = 10
    reports: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By replica; the others of `current_num_replicas` report nothing."""
    config: Any = field(default_factory=lambda: SimpleNamespace(upscale_delay_s=0.0, downscale_delay_s=0.0))
    app_name: str | None = "llm"
    deployment_name: str = "Engine"

    @property
    def running_replicas(self) -> Sequence[str]:
        silent = (f"silent-{i}" for i in range(self.current_num_replicas - len(self.reports)))
        return [*self.reports, *silent]

    @property
    def raw_metrics(self) -> Mapping[str, Mapping[str, Sequence[Value]]]:
        found: dict[str, dict[str, list[Value]]] = {}
        for replica, report in self.reports.items():
            for name, value in report.items():
                found.setdefault(name, {})[replica] = [Value(-1.0), Value(value)]
        return found
