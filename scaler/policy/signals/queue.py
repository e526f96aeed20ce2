"""Queue seconds: how long a request that queues now will wait, and how many replicas would make that short enough."""

from __future__ import annotations

from scaler.policy.capacity import Capacity
from scaler.policy.counting import number
from scaler.policy.observation import Load, Observation
from scaler.policy.settings import PolicySettings
from scaler.policy.signals.demand import Demand


def service_rate(load: Load) -> float | None:
    """Requests per second that the replicas work off, or None when nothing was served in the look-back.

    Generated tokens ÷ tokens of a request count besides finished requests: during long generations hardly
    any request finishes although all make progress.
    """
    by_tokens = None
    if load.generation_token_rate is not None and load.tokens_per_request:
        by_tokens = load.generation_token_rate / load.tokens_per_request
    rates = [rate for rate in (load.completion_rate, by_tokens) if rate]
    return max(rates, default=None)


def queue_seconds(load: Load) -> float | None:
    """Estimate the wait of a request that joins the queue now, in seconds (Little: queue ÷ service rate).

    None when it cannot be known: something waits and nothing was served yet.
    """
    if load.waiting is None:
        return None
    if load.waiting == 0:
        return 0.0
    rate = service_rate(load)
    return None if rate is None else load.waiting / rate


def demand(settings: PolicySettings, _: Capacity, observation: Observation) -> Demand | None:
    """Replicas that work off the queue within `target_queue_seconds` while the present ones serve what arrives."""
    load, target = observation.load, settings.target_queue_seconds
    wait = queue_seconds(load)
    if wait is None or target is None or not load.known:
        return None
    if wait <= target:
        return Demand(0.0, f"wait of {number(wait)}s is within {target:g}s")
    extra = load.known * (wait - target) / target
    return Demand(load.known + extra, f"wait of {number(wait)}s is above {target:g}s", backlog=extra)
