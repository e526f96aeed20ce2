"""What every source of samples promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scaler.exposition.sample import Sample


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One pod's metrics page."""

    pod: str
    uid: str
    host: str
    """An IP address."""
    port: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """The pod could not be read; `reason` is one line for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a target's pages are read."""

    path: str = "/metrics"
    scheme: str = "http"
    engine: str | None = None
    """A dialect's name; None finds it from the page."""
    namespace: str = ""
    """The target's namespace, for sources that ask by name."""


class Source(Protocol):
    """Where samples come from: pods over HTTP, a Prometheus query, or a recording."""

    async def sample(
        self, endpoints: Sequence[Endpoint], options: ReadOptions, deadline_s: float
    ) -> Mapping[str, Sample | Unknown]:
        """Read all endpoints at once and return what each said, by pod name.

        Returns within `deadline_s` seconds of the last question (asked at once, unless there is too much to do): a pod
        that has not answered by then is Unknown, and delays no other.
        Never raises for a pod's fault.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...
