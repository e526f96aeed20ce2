"""Between decisions and the room on nodes: what targets want of it, and what is wrong with what they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from scaler.cluster.model import Workload
from scaler.policy.parsing import Amount
from scaler.targets import Outcomes, Record, Target, Targets

NOBODY = "warmReplicas: no room on nodes is made, for this server was started {}"
WITHOUT = "without --warm (in the chart: warm.enabled)"
SHADOW = "with --shadow"
_NONE = Amount(0)


class Keeper(Protocol):
    """Who makes the room."""

    def room(self, namespace: str, name: str) -> tuple[int, str]:
        """For how many of a ScaledObject's replicas there is room by now; and why there may be none, or empty."""
        ...


def warm_wishes(targets: Targets) -> Callable[[], Mapping[tuple[str, str], int]]:
    """Return what gives the room that is wanted, by ScaledObject: the most that one of its triggers wants."""

    def wishes() -> Mapping[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for target, record in targets.deciding():
            key = target.namespace, target.name
            found[key] = max(found.get(key, 0), record.decision.warm)
        return found

    return wishes


class Warmth:
    """Tells every target what room there is, with a warning where there may be none.

    Without a keeper, `why_not` is the reason.
    """

    def __init__(self, keeper: Keeper | None, why_not: str = "") -> None:
        self._keeper = keeper
        self._why_not = why_not

    def note(self, target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:  # noqa: ARG002
        """Look after a tick; an observer of the targets' world."""
        if self._keeper is not None:
            target.room, target.without_room = self._keeper.room(target.namespace, target.name)
        elif target.settings.warm_replicas != _NONE:
            target.without_room = NOBODY.format(self._why_not)
