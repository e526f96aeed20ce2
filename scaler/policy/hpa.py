"""The Horizontal Pod Autoscaler's arithmetic for one external metric of type AverageValue with target 1.

Source: `GetExternalPerPodMetricReplicas` of Kubernetes' replica calculator, and KEDA's three decimals.
"""

from __future__ import annotations

import math


def milli(value: float) -> int:
    """Return the metric value as it travels: KEDA prints three decimals, the HPA counts in thousandths."""
    return round(value * 1000)


def recommend(value: float, current: int, tolerance_up: float, tolerance_down: float) -> int:
    """Return what the HPA recommends for a metric `value` at `current` replicas (`status.replicas`).

    Inside the tolerance it keeps `current`; otherwise it takes the value, rounded up.
    """
    usage = milli(value)
    if current > 0:
        ratio = usage / (1000 * current)
        if 1 - tolerance_down <= ratio <= 1 + tolerance_up:
            return current
    return math.ceil(usage / 1000)


def arrival(value: float, current: int, minimum: int, maximum: int, tolerance_up: float, tolerance_down: float) -> int:
    """Return the count at which the HPA arrives, without behaviours: the recommendation within its limits.

    KEDA gives the HPA at least 1 as its minimum; going to 0 is KEDA's own act.
    """
    wanted = recommend(value, current, tolerance_up, tolerance_down)
    return max(1, minimum, min(maximum, wanted))
