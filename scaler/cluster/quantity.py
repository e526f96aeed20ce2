"""Numbers as Kubernetes writes them."""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)(n|u|m|k|[KMGTPE]i|[MGTPE])?")
_SUFFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3}
_SUFFIXES |= {letter: 1000.0**i for i, letter in enumerate("MGTPE", start=2)}
_SUFFIXES |= {f"{letter}i": 1024.0**i for i, letter in enumerate("KMGTPE", start=1)}


def parse_quantity(value: object) -> float | None:
    """Read a quantity such as `0`, `50m` or `1Gi`; None stays None. Raises ValueError."""
    if value is None:
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        raise ValueError(f"not a quantity: {value!r}")
    return float(match[1]) * _SUFFIXES[match[2] or ""]
