"""Times as the Kubernetes API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def unix(text: str | None) -> float | None:
    """Read an RFC 3339 time such as `2026-01-31T12:00:00Z` into Unix seconds; None stays None. Raises ValueError."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def micro_time(seconds: float) -> str:
    """Write Unix seconds as the API's MicroTime, which always has six digits."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
