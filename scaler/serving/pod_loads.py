"""The requests in each pod, as the targets' last ticks have read them: for whoever has to choose a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scaler.targets import Targets

_FRESH_S = 10.0
"""What is older says nothing about now."""


def pod_loads(targets: Targets) -> Callable[[str], Mapping[str, float]]:
    """Return what gives the waiting and running requests of a namespace's pods; a pod that is not in it is unknown."""

    def loads(namespace: str) -> Mapping[str, float]:
        oldest = targets.world.clock.utc() - _FRESH_S
        records = [target.latest for target in targets if target.namespace == namespace]
        return {
            pod.name: pod.waiting + pod.running
            for record in records
            if record is not None and record.time >= oldest
            for pod in record.pods
            if pod.waiting is not None and pod.running is not None
        }

    return loads
