"""A stage for promises: models on a cluster with KEDA and a scaler, with users, and every count that there was."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from scaler.serving.protocol import insight_pb2 as pb
from tests.cluster.asking import Asking
from tests.cluster.control_plane import Manifest
from tests.cluster.fleet import ClusterFleet
from tests.cluster.keda import KedaCluster
from tests.cluster.pod_watch import watch
from tests.cluster.role import PATHS, Role
from tests.cluster.workload_objects import set_status

_T = TypeVar("_T")

_SOON_S = 180.0
"""Several times what the HPA, which looks every 15 s, may take on a busy machine."""
_USERS_LOOK_EVERY_S = 0.2


class Model:
    """A model on stage. `users`, the number of requests that are always in work, may be changed at any time."""

    def __init__(self, stage: Stage, role: Role, fleet: ClusterFleet) -> None:
        self.name = role.name
        self.role = role
        self.users = role.users
        self.fleet = fleet
        self.counts: list[int] = []
        """Every `spec.replicas` that there was, from the first on."""
        self._stage = stage

    def went(self, *counts: int) -> bool:
        """Whether the count has gone this way. Raises AssertionError as soon as it went any other."""
        seen = list(self.counts)
        if seen != list(counts[: len(seen)]):
            told = self.explain()
            why = told.story if told else "the scaler has nothing to say"
            raise AssertionError(f"{self.name} went {seen} instead of {list(counts)}\n{why}")
        return len(seen) == len(counts)

    def goes(self, *counts: int) -> None:
        """Return once the count has gone this way."""
        self._stage.wait_for(f"{self.name} goes {counts}", lambda: self.went(*counts))

    def is_steady(self) -> bool:
        """Whether every pod that is asked for is ready, and every user has a request in work."""
        pods = [pod for pod in self.fleet.pods() if not pod.draining]
        at_work = sum(pod.running + pod.waiting for pod in pods)
        return len(pods) == self.role.replicas and at_work == self.users

    def seat(self) -> None:
        """Let users whose request has ended or was lost send it again, and those who have left take theirs along."""
        at_work = sum(pod.running + pod.waiting for pod in self.fleet.pods() if not pod.draining)
        if at_work > self.users:
            self.fleet.hang_up()
            at_work = 0
        self.fleet.send(self.users - at_work)

    def has(self, *triggers: Mapping[str, str]) -> None:
        """Give its ScaledObject other triggers."""
        self.role = replace(self.role, triggers=triggers)
        self._stage.apply(self.role.scaled_object(self._stage.scaler.address))

    def explain(self, trigger: str = "") -> pb.Explanation | None:
        """The scaler's latest decision, None where there is none."""
        return self._stage.scaler.explain(self._stage.namespace, self.name, trigger)

    def hpa(self) -> Manifest:
        """The status of its HPA; empty where there is none."""
        path = f"/apis/autoscaling/v2/namespaces/{self._stage.namespace}/horizontalpodautoscalers/keda-hpa-{self.name}"
        found = self._stage.cluster.get(path) or {}
        status: Manifest = found.get("status", {})
        return status

    def values(self) -> list[str]:
        """What the HPA was told last, by metric, each divided by the present count."""
        metrics = self.hpa().get("currentMetrics") or ()
        return [metric["external"]["current"]["averageValue"] for metric in metrics if "external" in metric]

    def ask_as_the_hpa_does(self) -> None:
        """Ask KEDA for the value of each metric, whatever the answer."""
        for metric in self._status()["externalMetricNames"]:
            path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{self._stage.namespace}/{metric}"
            self._stage.cluster.api.get(path, params={"labelSelector": f"scaledobject.keda.sh/name={self.name}"})

    def frozen(self) -> bool:
        """Whether the HPA was refused its metric when it looked last."""
        refused = ("ScalingActive", "False", "FailedGetExternalMetric")
        conditions = self.hpa().get("conditions", ())
        return any((each["type"], each["status"], each["reason"]) == refused for each in conditions)

    def scaled_by(self) -> set[str]:
        """Who has set `spec.replicas` through `/scale`, as the API server has noted."""
        path = f"{PATHS[self.role.kind].format(self._stage.namespace)}/{self.name}"
        fields = (self._stage.cluster.get(path) or {})["metadata"]["managedFields"]
        return {entry["manager"] for entry in fields if entry.get("subresource") == "scale"}

    def last_active(self) -> float:
        """When KEDA last heard that there is work (Unix time in whole seconds); 0 where it never did."""
        status = self._status()
        return datetime.fromisoformat(status["lastActiveTime"]).timestamp() if "lastActiveTime" in status else 0.0

    def _status(self) -> Manifest:
        """The status of its ScaledObject; empty where there is none."""
        path = f"/apis/keda.sh/v1alpha1/namespaces/{self._stage.namespace}/scaledobjects/{self.name}"
        status: Manifest = (self._stage.cluster.get(path) or {}).get("status", {})
        return status

    def described(self) -> str:
        """`kubectl describe scaledobject`."""
        return self._stage.cluster.kubectl("describe", "scaledobject", self.name, "-n", self._stage.namespace)

    def annotate(self, annotation: str) -> None:
        """`key=value`, or `key-` to take it away, on the ScaledObject."""
        self._stage.cluster.kubectl(
            "annotate", "scaledobject", self.name, annotation, "--overwrite", "-n", self._stage.namespace
        )

    def pods(self) -> list[str]:
        """The names of all its pods."""
        path = f"/api/v1/namespaces/{self._stage.namespace}/pods?labelSelector=app={self.name}"
        return [pod["metadata"]["name"] for pod in (self._stage.cluster.get(path) or {}).get("items", ())]

    def make_ready(self, *pods: str) -> None:
        """End the start-up of pods."""
        ready = {"conditions": [{"type": kind, "status": "True"} for kind in ("ContainersReady", "Ready")]}
        for pod in pods:
            set_status(self._stage.cluster, f"/api/v1/namespaces/{self._stage.namespace}/pods/{pod}", ready)


class Stage:
    """A namespace with models, as a context manager; what plays on it ends with the block."""

    def __init__(self, cluster: KedaCluster, namespace: str, scaler: Asking) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.scaler = scaler
        self._fleets = ExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stage", daemon=True)
        self._work: list[Future[None]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._fleets.close()
        if error is None:
            self._check()

    def play(self, *roles: Role) -> list[Model]:
        """Put models on stage, all at once: workloads, then users, then ScaledObjects."""
        self.apply(*(role.workload() for role in roles))
        models = [self._play(role) for role in roles]
        for model in models:
            if model.role.begins_ready:
                self.wait_for(f"{model.name} at work", model.is_steady)
        self.apply(*(role.scaled_object(self.scaler.address) for role in roles))
        return models

    def apply(self, *manifests: Manifest) -> None:
        """Create or change objects."""
        self.cluster.apply(*manifests, namespace=self.namespace)

    def wait_for(self, what: str, condition: Callable[[], _T | None]) -> _T:
        """The first true value of the condition; long enough for several looks of the HPA."""

        def look() -> _T | None:
            self._check()
            return condition()

        return self.cluster.wait_for(what, look, timeout_s=_SOON_S)

    def _play(self, role: Role) -> Model:
        fleet = ClusterFleet(self.cluster, f"app={role.name}", namespace=self.namespace, profile=role.profile)
        model = Model(self, role, self._fleets.enter_context(fleet))
        self._begin(self._watch(model))
        self._begin(self._seat(model))
        return model

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._work.append(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _check(self) -> None:
        """Raise what has ended a part of the stage."""
        for work in self._work:
            if work.done() and not work.cancelled():
                work.result()

    async def _watch(self, model: Model) -> None:
        query = {"fieldSelector": f"metadata.name={model.name}"}
        async for objects in watch(self.cluster, PATHS[model.role.kind].format(self.namespace), query):
            for found in objects.values():
                if model.counts[-1:] != [count := found["spec"]["replicas"]]:
                    model.counts.append(count)

    async def _seat(self, model: Model) -> None:
        while True:
            await asyncio.to_thread(model.seat)
            await asyncio.sleep(_USERS_LOOK_EVERY_S)


async def _cancel_others() -> None:
    """Cancel every other task of the loop, and return when they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
