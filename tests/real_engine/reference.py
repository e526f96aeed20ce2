"""A metrics page as prometheus_client's parser reads it: what everything else is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families


class Reference:
    """One page, parsed."""

    def __init__(self, page: bytes) -> None:
        self._families = list(text_string_to_metric_families(page.decode()))

    def value(self, series: str) -> float:
        """A series' sum over its labels. Raises KeyError where the page has no sample of it."""
        found = [sample.value for family in self._families for sample in family.samples if sample.name == series]
        if not found:
            raise KeyError(series)
        return sum(found)

    def families(self) -> Mapping[str, Shape]:
        """Name → what the page shows of a family whatever its values."""
        return {family.name: Shape.of(family) for family in self._families}


@dataclass(frozen=True, slots=True)
class Shape:
    """A family without its values."""

    kind: str
    help: str
    labels: frozenset[str]
    """Of all its samples."""

    @classmethod
    def of(cls, family: Metric) -> Shape:
        """Take a family's shape."""
        labels = frozenset(label for sample in family.samples for label in sample.labels)
        return cls(family.type, family.documentation, labels)
