"""The metric value that makes the HPA arrive exactly at the wanted count, in spite of its dead band."""

from __future__ import annotations

import math
from typing import Literal

from scaler.policy.decision import Emission
from scaler.policy.hpa import arrival, recommend
from scaler.policy.observation import Limits

ToleranceMode = Literal["exact", "round-up", "hold"]


def emit(desired: int, current: int, limits: Limits, mode: ToleranceMode) -> Emission:
    """Return the value to emit for `desired` replicas while the HPA sees `current` (`status.replicas`).

    The count itself is right wherever the HPA lets it through: always with tolerance 0, and below 10 replicas
    with the default of 0.1. At the limits a value well beyond them passes, since the HPA clamps it. Between,
    `round-up` goes to the first count above that passes; `exact` and `hold` stay, and the note says so.
    """
    wanted = max(1, limits.minimum, min(limits.maximum, desired))

    def emission(value: float, note: str = "") -> Emission:
        return Emission(float(value), arrive(value), note)

    def arrive(value: float) -> int:
        return arrival(value, current, limits.minimum, limits.maximum, limits.tolerance_up, limits.tolerance_down)

    zero = "the HPA keeps at least 1; KEDA goes to 0 once its cooldown has passed" if desired < wanted else ""
    if arrive(desired) == wanted:
        return emission(desired, zero)
    first_up = max(current + 1, math.floor(current * (1 + limits.tolerance_up)))
    while recommend(first_up, current, limits.tolerance_up, limits.tolerance_down) == current:
        first_up += 1  # whether a ratio at the very edge passes is for the HPA's own arithmetic to say
    if wanted == limits.maximum and arrive(first_up) == wanted:
        return emission(first_up)
    if wanted == max(1, limits.minimum) and arrive(0) == wanted:
        return emission(0, zero)
    why = f"the HPA's tolerance keeps {current} where {desired} is wanted"
    if mode == "round-up" and desired > current:
        return emission(first_up, f"{why}; {arrive(first_up)} is the first count above that passes")
    if mode == "exact":
        way_out = "set tolerance 0 in the ScaledObject's behaviors (from Kubernetes 1.35), or toleranceMode: round-up"
        return emission(desired, f"{why}: {way_out}")
    return emission(current, why)
