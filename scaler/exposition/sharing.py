"""Gauges that are on the pages of only some of a target's pods, as those of Ray Serve's routers are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scaler.exposition.dialects import ENGINES
from scaler.exposition.sample import Sample


def shared(samples: Mapping[str, Sample]) -> Mapping[str, Sample]:
    """Return the samples, by pod, with what a page leaves to the pages of other pods.

    A gauge that is shared is added up over the pages that show it; where none does it stays unknown. What a page shows
    and nobody can read stays unknown too.
    """
    partly = {pod: sample for pod, sample in samples.items() if sample.unknown and sample.engine in ENGINES}
    found = dict(samples)
    for pod, sample in partly.items():
        for field in ENGINES[sample.engine].shared & sample.unknown.keys():
            is_unreadable = any(field in each.unknown for each in sample.engines.values())
            others = (other for other in samples.values() if other.engine == sample.engine)
            if not is_unreadable and any(getattr(other, field) is not None for other in others):
                found[pod] = _with(found[pod], field)
    return found


def _with(sample: Sample, field: str) -> Sample:
    """Let a page say what the engines on it say, and nothing for what is elsewhere."""
    known = [value for each in sample.engines.values() if (value := getattr(each, field)) is not None]
    unknown = {name: why for name, why in sample.unknown.items() if name != field}
    values: dict[str, Any] = {field: math.fsum(known)}
    return replace(sample, unknown=unknown, **values)
