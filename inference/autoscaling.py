"""`scaler.policy` as the autoscaling policy of a Ray Serve deployment: the same keys, and the same decisions.

    autoscaling_config:
      min_replicas: 1
      max_replicas: 8
      upscale_delay_s: 0      # Serve's own delays come on top of the policy's
      downscale_delay_s: 0
      look_back_period_s: 2   # over which Serve averages what it tells the policy
      metrics_interval_s: 0.5
      policy:
        policy_function: inference.autoscaling:Policy
        policy_kwargs: {policy: ray-serve, targetOngoingRequests: 12}  # a trigger's metadata

Serve makes one `Policy` for each deployment, in its controller, and calls it about ten times a second. Source of the
hook: https://docs.ray.io/en/latest/serve/advanced-guides/advanced-autoscaling.html#custom-autoscaling-policies
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from inference.replica_load import combined, is_report
from inference.starts import Starts
from scaler.policy import Decision, Limits, Load, Observation, PolicySettings, Replicas, SettingsError, State, decide
from scaler.policy.parsing import parse
from scaler.policy.presets import with_policy

log = logging.getLogger("ray.serve")

_ON_TOP = {"upscale_delay_s": 0.0, "downscale_delay_s": 0.0, "upscaling_factor": 1.0, "downscaling_factor": 1.0}
"""What Serve does to a policy's answer, and the values with which it does nothing."""


class Value(Protocol):
    """One of Ray's TimeStampedValue."""

    value: float


class Context(Protocol):
    """What this policy reads of Ray Serve's AutoscalingContext."""

    app_name: str | None
    deployment_name: str
    current_num_replicas: int
    """Those that run."""
    target_num_replicas: int
    running_replicas: Sequence[Any]
    capacity_adjusted_min_replicas: int
    capacity_adjusted_max_replicas: int
    current_time: float | None
    """Unix time in seconds."""
    config: Any

    @property
    def total_num_requests(self) -> float:
        """Requests in queues and replicas, averaged over `look_back_period_s`."""
        ...

    @property
    def total_queued_requests(self) -> float:
        """Those of them that no replica has taken."""
        ...

    @property
    def raw_metrics(self) -> Mapping[str, Mapping[Any, Sequence[Value]]] | None:
        """What `record_autoscaling_stats` of the replicas said: by name and replica, oldest first."""
        ...


def settings(metadata: Mapping[str, Any]) -> PolicySettings:
    """Read a trigger's metadata: strings, or numbers as YAML has them. Raises SettingsError with every problem."""
    return parse(PolicySettings, with_policy({key: str(value) for key, value in metadata.items()}))


class Policy:
    """The policy of one deployment; its arguments are a trigger's metadata.

    It never raises. Serve would try again ten times a second; and an error at its making would stop Serve's controller
    for all applications. What is wrong is in the controller's log, and the count stays as it is.
    """

    def __init__(self, **metadata: Any) -> None:
        self.settings: PolicySettings | None = None
        try:
            self.settings = settings(metadata)
        except SettingsError as error:
            log.error("the autoscaling policy decides nothing, its policy_kwargs are wrong: %s", error)
        self.decision: Decision | None = None
        """The last one, with the steps that led to it."""
        self._state: State | None = None
        self._decided_at = -math.inf
        self._starts = Starts()
        self._failure = ""
        self._is_new = True

    def __call__(self, context: Context) -> tuple[int, dict[str, Any]]:
        """Return how many replicas there should be, and nothing for Serve to keep."""
        if self.settings is None:
            return context.target_num_replicas, {}
        try:
            if self._is_new:
                self._is_new = False
                _warn_of_what_serve_adds(context)
            return self._desired(self.settings, context), {}
        except Exception as error:
            before, self._failure = self._failure, f"{type(error).__name__}: {error}"
            if self._failure != before:
                log.exception("no decision for %s: the count stays", _name(context))
            return context.target_num_replicas, {}

    def _desired(self, settings: PolicySettings, context: Context) -> int:
        now = _now(context)
        self._starts.see(context.target_num_replicas, context.current_num_replicas, now)
        if self.decision is None or not 0 <= now - self._decided_at < settings.metrics_interval_s:
            before = context.target_num_replicas if self.decision is None else self.decision.desired
            self._state, self.decision = decide(settings, self._state, self.observe(context))
            self._decided_at = now
            if self.decision.desired != before:
                change = (_name(context), before, self.decision.desired, self.decision.reason)
                log.info("%s: %s → %s replicas, %s", *change)
        return self.decision.desired

    def observe(self, context: Context) -> Observation:
        """Put into the policy's words what Serve knows."""
        now = _now(context)
        target, load = context.target_num_replicas, _load(context)
        return Observation(
            time=now,
            utc=now,
            load=load,
            replicas=Replicas(target, target, load.known, starting=max(0, target - load.known)),
            limits=Limits(context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas, 0.0, 0.0),
            start_up=self._starts.start_up,
        )


def _now(context: Context) -> float:
    return time.time() if context.current_time is None else context.current_time


def _load(context: Context) -> Load:
    """Take what replicas report of themselves; where none does, what Serve counts at handles and replicas.

    One that has not reported yet has just begun to run, and counts as one that starts.
    """
    queued, ongoing = _known(context.total_queued_requests), _known(context.total_num_requests)
    count = context.current_num_replicas
    latest: dict[Any, dict[str, float]] = {replica: {} for replica in context.running_replicas}
    for name, by_replica in (context.raw_metrics or {}).items():
        for replica, series in by_replica.items():
            if replica in latest and series and (value := _known(series[-1].value)) is not None:
                latest[replica][name] = value
    reports = [values for values in latest.values() if is_report(values)]
    if reports:
        return combined(reports, max(queued or 0.0, ongoing or 0.0))
    running = None if queued is None or ongoing is None else max(0.0, ongoing - queued)
    each = running / count if count and running is not None else None  # at least one has so many
    is_full = queued is not None and queued >= 2 * max(1, count)
    return Load(known=count, waiting=queued, running=running, most_running=each, full_running=each if is_full else None)


def _known(value: float) -> float | None:
    """Return an amount; None for what is no number, of which no load can be told."""
    return max(0.0, value) if math.isfinite(value) else None


def _warn_of_what_serve_adds(context: Context) -> None:
    for key, neutral in _ON_TOP.items():
        value = getattr(context.config, key, None)
        if value is not None and value != neutral:
            log.warning(
                "autoscaling_config of %s: %s %g comes on top of what the policy does; right is %g",
                _name(context),
                key,
                value,
                neutral,
            )


def _name(context: Context) -> str:
    return f"{context.app_name}/{context.deployment_name}"
