"""The steps of a decision, in order. Each is one rule: it may change the want, and then says so in one line.

A step's `rule` in an explanation is the name of its function here.
"""

from __future__ import annotations

from collections.abc import Callable

from scaler.policy.steps.ahead import look_ahead
from scaler.policy.steps.delaying import delay
from scaler.policy.steps.demand import signals
from scaler.policy.steps.draft import Draft
from scaler.policy.steps.limiting import blocked, bounds, budget, credit, hold, step_limits
from scaler.policy.steps.shaping import burst, factors, headroom, smooth

__all__ = ["LIMITING", "SHAPING", "Draft", "signals"]

SHAPING: tuple[Callable[[Draft], None], ...] = (burst, smooth, look_ahead, factors, headroom)
"""From a demand to a want. Where no demand is known there is nothing to shape: the count must not multiply itself."""
LIMITING: tuple[Callable[[Draft], None], ...] = (delay, step_limits, credit, blocked, hold, bounds, budget)
"""From a want to a count."""
