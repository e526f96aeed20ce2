"""Rules about the HPA that KEDA makes: where it changes or delays the count that was decided."""

from __future__ import annotations

from collections.abc import Iterator

from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifests
from scaler.cli.linting.rule import hint, warning
from scaler.cli.linting.scaled_object import BEHAVIOR, ScaledObject
from scaler.quoting import quoted

DEAD_BAND_FROM = 10
"""Below, a step of one replica is more than the default tolerance of 10 %."""

DEFAULT_UP_PODS = 4
"""Without policies of its own the HPA adds 4 pods or doubles, whichever is more, in 15 s."""

DEFAULT_DOWN_WINDOW_S = 300


@warning
def tolerance(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The HPA moves nothing that is within 10 % of the present count: at 20 replicas it swallows 21 and 22. With
    tolerance 0 (Kubernetes 1.35, KEDA 2.18 or newer) each count arrives, and the calm is the policy's work. For
    older clusters say toleranceMode: round-up or hold in the metadata.
    """
    exact = any(t.settings and t.settings.tolerance_mode == "exact" for t in so.triggers)
    if not exact or so.maximum < DEAD_BAND_FROM:
        return
    for direction in ("scaleUp", "scaleDown"):
        value = so.behavior(direction, "tolerance")
        if not _is_zero(value):
            yield Flaw(
                so.behavior_place(direction, "tolerance"),
                f"{direction} has {'no tolerance' if value is None else f'tolerance {quoted(value)}'}, and "
                f"maxReplicaCount is {so.maximum}",
                f'{".".join(BEHAVIOR)}.{direction}.tolerance: "0"',
            )


@warning
def scale_up_stabilization(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The HPA's window comes on top of the policy's upscaleDelay, and no burst can skip it."""
    window = so.number(*BEHAVIOR, "scaleUp", "stabilizationWindowSeconds")
    if window > 0:
        yield Flaw(
            so.behavior_place("scaleUp", "stabilizationWindowSeconds"),
            f"scaleUp waits {window:g} s longer",
            "stabilizationWindowSeconds: 0, and upscaleDelay in the metadata",
        )


@hint
def scale_down_stabilization(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The HPA's window for scaling down, 300 s unless said otherwise, comes on top of the policy's downscaleDelay."""
    said = so.behavior("scaleDown", "stabilizationWindowSeconds")
    window = DEFAULT_DOWN_WINDOW_S if said is None else so.number(*BEHAVIOR, "scaleDown", "stabilizationWindowSeconds")
    for settings in (trigger.settings for trigger in so.triggers):
        if window > 0 and settings is not None:
            yield Flaw(
                so.behavior_place("scaleDown", "stabilizationWindowSeconds"),
                f"scaleDown waits {window:g} s{' by default' if said is None else ''}, and downscaleDelay's "
                f"{settings.downscale_delay_s:g} s before",
                "stabilizationWindowSeconds: 0, and downscaleDelay in the metadata",
            )


@hint
def scale_up_policies(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """Without policies the HPA adds 4 pods or doubles, whichever is more, in 15 s: a burst reaches a far maximum
    only in several rounds.
    """
    start = max(so.minimum, 1)
    if so.behavior("scaleUp", "policies") is None and so.maximum > max(2 * start, start + DEFAULT_UP_PODS):
        yield Flaw(
            so.behavior_place("scaleUp", "policies"),
            f"no scaleUp.policies for the way from {start} to {so.maximum}",
            f"policies: [{{type: Pods, value: {so.maximum}, periodSeconds: 15}}], and upscaleLimit in the metadata "
            "where steps should be smaller",
        )


@warning
def direction_disabled(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """A disabled direction is never taken, whatever the scaler decides."""
    for direction in ("scaleUp", "scaleDown"):
        if so.behavior(direction, "selectPolicy") == "Disabled":
            yield Flaw(
                so.behavior_place(direction, "selectPolicy"),
                f"{direction} is disabled",
                "selectPolicy: Max; to pause for a while: the annotation "
                f"autoscaling.keda.sh/paused-scale-{'out' if direction == 'scaleUp' else 'in'}",
            )


def _is_zero(value: object) -> bool:
    try:
        return isinstance(value, str | int | float) and float(value) == 0
    except ValueError:
        return False
