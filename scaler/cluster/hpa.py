"""KEDA's HPA as the API server serves it: the tolerances and limits that are really in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaler.cluster.client import Json
from scaler.cluster.model import ScaledObject
from scaler.cluster.quantity import parse_quantity

DEFAULT_TOLERANCE = 0.1
"""`--horizontal-pod-autoscaler-tolerance` of the controller manager, unless somebody changed it there."""

_PREFIX = "keda-hpa-"
_LABEL = "scaledobject.keda.sh/name"


@dataclass(frozen=True, slots=True)
class Hpa:
    """An HPA that KEDA made for a ScaledObject. A tolerance is None where the object carries none."""

    name: str
    scaled_object: str
    minimum: int
    maximum: int
    asks: bool
    """Whether it scales by an external metric, as it must to follow an external scaler."""
    tolerance_up: float | None
    tolerance_down: float | None


def parse_hpa(item: Json, _before: Hpa | None = None) -> Hpa | None:
    """Return KEDA's HPA, None for any other."""
    metadata, spec = item["metadata"], item["spec"]
    scaled_object = _scaled_object(metadata)
    if scaled_object is None:
        return None
    behavior = spec.get("behavior") or {}
    return Hpa(
        name=metadata["name"],
        scaled_object=scaled_object,
        minimum=spec.get("minReplicas", 1),
        maximum=spec["maxReplicas"],
        asks=any(metric["type"] == "External" for metric in spec.get("metrics") or ()),
        tolerance_up=parse_quantity((behavior.get("scaleUp") or {}).get("tolerance")),
        tolerance_down=parse_quantity((behavior.get("scaleDown") or {}).get("tolerance")),
    )


def _scaled_object(metadata: Mapping[str, Any]) -> str | None:
    """The ScaledObject that an HPA belongs to: its owner, else its label, else what KEDA's way of naming says."""
    for owner in metadata.get("ownerReferences") or ():
        if owner["kind"] == "ScaledObject":
            return str(owner["name"])
    if label := (metadata.get("labels") or {}).get(_LABEL):
        return str(label)
    name: str = metadata["name"]
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None


def hpa_warnings(scaled_object: ScaledObject, hpa: Hpa) -> list[str]:
    """Say where the HPA is not what the ScaledObject asks for, one line each."""
    lines = []
    if not hpa.asks:
        lines.append(
            f"HPA {hpa.name} asks for no external metric, so the count does not follow this scaler: KEDA up to 2.19 "
            "makes it so, scaling by CPU, where the scaler does not answer; if its next polls do not put it right, "
            "delete the HPA"
        )
    for direction, asked, served in (
        ("scaleUp", scaled_object.tolerance_up, hpa.tolerance_up),
        ("scaleDown", scaled_object.tolerance_down, hpa.tolerance_down),
    ):
        if asked is None or served == asked:
            continue
        if served is None:
            lines.append(
                f"HPA {hpa.name} carries no {direction} tolerance though the ScaledObject asks for {asked:g}: the API "
                f"server dropped it (feature gate HPAConfigurableTolerance, on by default from Kubernetes 1.35), so "
                f"{DEFAULT_TOLERANCE:g} is in force, and toleranceMode says what happens within it"
            )
        else:
            lines.append(
                f"HPA {hpa.name} carries a {direction} tolerance of {served:g} where the ScaledObject asks for "
                f"{asked:g}: KEDA has not updated it yet"
            )
    for what, wanted, found in (
        ("minimum", max(1, scaled_object.minimum), hpa.minimum),  # zero is KEDA's own affair
        ("maximum", scaled_object.maximum, hpa.maximum),
    ):
        if wanted != found:
            lines.append(
                f"HPA {hpa.name} has a {what} of {found} replicas where the ScaledObject asks for {wanted}: KEDA has "
                "not updated it yet"
            )
    return lines
