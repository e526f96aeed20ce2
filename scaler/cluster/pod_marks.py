"""Annotations on pods that others act on: ReplicaSets when they take pods away, node autoscalers when they move them.

What somebody else has set on a pod stays as it is: the keys that are ours are noted on the pod itself, so that another
process can take them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.errors import CONFLICT, FORBIDDEN, NOT_FOUND, ApiError
from scaler.cluster.model import Pod
from scaler.cluster.resources import PODS

log = structlog.get_logger(__name__)

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Of the ready pods that are too many a ReplicaSet takes those of the lowest cost first; without it the cost is 0."""
KARPENTER = "karpenter.sh/do-not-disrupt"
"""`true` keeps Karpenter from emptying the pod's node of its own will."""
AUTOSCALER = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""`false` keeps the Cluster Autoscaler from taking the pod's node away."""
OURS = "vllm-scaler.dev/marks"
"""The keys on this pod that are ours, separated by commas."""
MARKS = (DELETION_COST, KARPENTER, AUTOSCALER, OURS)

_AGAIN_S = 10.0
"""When a write that the watch has not shown yet is tried again."""
_REFUSED_S = 60.0
"""For how long nothing is written in a namespace that refused it."""


def change(present: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """Return what to write so that of our marks a pod has those that are wanted; None takes one away."""
    ours = {key for key in present.get(OURS, "").split(",") if key}
    free = {key: value for key, value in wanted.items() if key in ours or key not in present}
    after: dict[str, str | None] = {key: None for key in ours if key in present}
    after[OURS] = ",".join(sorted(free)) or None
    after |= free
    return {key: value for key, value in after.items() if present.get(key) != value}


class PodMarker:
    """Carries marks to pods, one after the other. `mark` never waits; `run` writes.

    A mark is a help, not a duty: what cannot be written is logged and let go.
    """

    def __init__(self, client: ApiClient) -> None:
        self.errors: dict[str, str] = {}
        """By namespace, why nothing may be written there."""
        self._client = client
        self._queue: asyncio.Queue[tuple[str, Pod, dict[str, str | None]]] = asyncio.Queue()
        self._sent: dict[str, tuple[float, dict[str, str | None]]] = {}
        """By the pod's uid: until when the watch may take to show what was written."""
        self._quiet_until: dict[str, float] = {}

    def mark(self, namespace: str, pod: Pod, wanted: Mapping[str, str]) -> None:
        """Have a pod carry these marks of ours, and no others."""
        if not wanted and not pod.marks:
            return
        changes = change(pod.marks, wanted)
        now = asyncio.get_running_loop().time()
        until, sent = self._sent.get(pod.uid, (0.0, None))
        if not changes or (changes == sent and now < until) or now < self._quiet_until.get(namespace, 0.0):
            return
        self._sent[pod.uid] = now + _AGAIN_S, changes
        self._queue.put_nowait((namespace, pod, changes))

    async def run(self) -> None:
        """Write marks until cancelled."""
        while True:
            namespace, pod, changes = await self._queue.get()
            now = asyncio.get_running_loop().time()
            if now >= self._quiet_until.get(namespace, 0.0):
                await self._write(namespace, pod, changes)
            if self._queue.empty():
                self._sent = {uid: entry for uid, entry in self._sent.items() if entry[0] > now}

    async def _write(self, namespace: str, pod: Pod, changes: dict[str, str | None]) -> None:
        body: Json = {"metadata": {"uid": pod.uid, "annotations": changes}}  # not on another pod of this name
        try:
            await self._client.patch(PODS, namespace, pod.name, body)
        except ApiError as error:
            if error.status == FORBIDDEN:
                if namespace not in self.errors:  # said once, whichever pod it is about
                    self.errors[namespace] = f"pods are not marked: {error}"
                    log.warning("pods are not marked", namespace=namespace, error=str(error))
                self._quiet_until[namespace] = asyncio.get_running_loop().time() + _REFUSED_S
            elif error.status not in {NOT_FOUND, CONFLICT}:
                log.warning("pod not marked", namespace=namespace, pod=pod.name, error=str(error))
        else:
            self.errors.pop(namespace, None)
