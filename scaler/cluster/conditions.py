"""Conditions in the status of Kubernetes objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def conditions_of(status: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the conditions that stand in a status, by type; none where there is no status yet."""
    return {condition["type"]: condition for condition in (status or {}).get("conditions") or ()}
