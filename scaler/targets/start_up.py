"""How long a start takes: from a pod's creation to its first being ready, measured on the target's own pods."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from scaler.cluster.model import Pod
from scaler.policy.observation import StartUp

_REMEMBERED = 32


class StartUpMeter:
    """Remembers the last starts. Restarts of a container are no starts, so each pod counts once."""

    def __init__(self) -> None:
        self._seconds: OrderedDict[str, float] = OrderedDict()

    def see(self, pods: Iterable[Pod]) -> None:
        """Take in the pods as they are now."""
        for pod in pods:
            if pod.ready_at is not None and pod.ready_at > pod.created and pod.uid not in self._seconds:
                self._seconds[pod.uid] = pod.ready_at - pod.created
                if len(self._seconds) > _REMEMBERED:
                    self._seconds.popitem(last=False)

    @property
    def start_up(self) -> StartUp | None:
        """Median and p90 in seconds, None until a start was seen."""
        return StartUp.of(self._seconds.values())
