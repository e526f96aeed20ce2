"""A workload put together from what was seen of it."""

from __future__ import annotations

from scaler.cluster.hpa import DEFAULT_TOLERANCE, Hpa, hpa_warnings
from scaler.cluster.model import DiscoveryError, Pod, ScaledObject, Workload
from scaler.cluster.scale import Scale, TargetRef


def assemble(
    scaled_object: ScaledObject, scale: Scale, pods: tuple[Pod, ...], hpa: Hpa | None, hpa_error: str
) -> Workload:
    """Join the parts; `hpa_error` says why the HPA could not be looked for, where that is so."""
    warnings = hpa_warnings(scaled_object, hpa) if hpa is not None else []
    if hpa_error:
        warnings.append(f"the HPA cannot be read, a tolerance of {DEFAULT_TOLERANCE:g} is assumed: {hpa_error}")
    return Workload(
        requested=scale.requested,
        current=scale.current,
        pods=pods,
        minimum=scaled_object.minimum,
        maximum=scaled_object.maximum,
        tolerance_up=_tolerance(hpa.tolerance_up if hpa else None),
        tolerance_down=_tolerance(hpa.tolerance_down if hpa else None),
        paused=scaled_object.paused,
        warnings=tuple(warnings),
        idle=scaled_object.idle,
    )


def target_of(scaled_object: ScaledObject) -> TargetRef:
    """Return what a ScaledObject scales."""
    return TargetRef(scaled_object.namespace, scaled_object.api_version, scaled_object.kind, scaled_object.target)


def without_selector(ref: TargetRef) -> DiscoveryError:
    """Say that a target does not tell which pods are its own."""
    return DiscoveryError(
        f"the /scale of {ref} reports no status.selector: its pods cannot be told, neither by this server nor by the "
        "HPA; the resource's controller must set it"
    )


def _tolerance(served: float | None) -> float:
    return DEFAULT_TOLERANCE if served is None else served
