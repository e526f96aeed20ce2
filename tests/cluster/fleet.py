"""vLLM for the pods of a cluster whose containers do not run: each ready pod is played over HTTP on its own address."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from inference.simulated import TIME_BOUND, Fault, Fleet, Outcome, PodState, Profile, Request
from inference.simulated.server import Address, FleetServer
from inference.simulated.traffic import CHAT, RequestClass, arrivals, constant
from tests.cluster.cluster import is_ready
from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.pod_watch import watch_pods

_T = TypeVar("_T")
_CALL_TIMEOUT_S = 30.0
_FOR_EVER_S = 1e9


@dataclass(frozen=True, slots=True)
class Played:
    """A pod that is played."""

    name: str
    address: str
    """`host:port` of its metrics page."""
    running: int
    waiting: int
    draining: bool


class ClusterFleet:
    """The vLLM pods that a label selector picks, as long as the `with` block lasts.

    A pod's engine starts when Kubernetes calls the pod ready, so its start-up time is what its annotation says. Once
    deleted it takes no more requests and finishes its own; what it has left when the pod object goes is lost. A pod is
    known by its uid: one that comes back under its old name is a new engine.

    The router sends each request to the ready pod with the fewest in it: those of `traffic`, whose times count from
    the start, and what `offer` and `send` ask for.

    Everything runs on a thread of its own, one for hundreds of pods, so that a test may wait as it likes; the methods
    may be called from any thread, and raise what has ended the thread.
    """

    def __init__(
        self,
        plane: ControlPlane,
        selector: str = "",
        *,
        namespace: str,
        traffic: Iterable[Request] = (),
        profile: Profile = TIME_BOUND,
        dialect: Literal["vllm", "sglang"] = "vllm",
        port: int = 8000,
        seed: int = 0,
    ) -> None:
        self._plane = plane
        self._namespace = namespace
        self._selector = selector
        self._port = port
        self._seed = seed
        self._fleet = Fleet(traffic, profile=profile, seed=seed)
        self._addresses: deque[Address] = deque()
        """Of pods whose server is not open yet."""
        addresses = iter(self._addresses.popleft, None)
        self._server = FleetServer(self._fleet, self._now, addresses=addresses, dialect=dialect)
        self._names: dict[str, str] = {}
        """Uid → name, of every pod that has been ready and whose object is there."""
        self._offering: asyncio.Task[None] | None = None
        self._began = time.monotonic()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._up.wait()
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._error is None:
            self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join()
        if error is None:
            self._check()

    # What a test may do

    def pods(self) -> list[Played]:
        """The pods that are played now, oldest first."""

        async def look() -> list[Played]:
            await self._server.play()
            return [
                Played(
                    self._names[pod.name],
                    self._server.address(pod.name),
                    pod.engine.running,
                    pod.engine.waiting,
                    draining=pod.state is PodState.TERMINATING,
                )
                for pod in self._fleet.pods.values()
            ]

        return self._call(look())

    def outcomes(self) -> list[Outcome]:
        """The requests that have ended so far."""

        async def look() -> list[Outcome]:
            await self._server.play()
            return list(self._server.outcomes)

        return self._call(look())

    def send(self, count: int, *, prompt_tokens: int = 1000, output_tokens: int = 100_000) -> None:
        """Send requests, all at once. As long as the default they stay for as long as a test lasts."""

        async def put() -> None:
            for _ in range(count):
                now = self._now()
                self._fleet.send(Request(now, prompt_tokens, output_tokens), now)

        self._call(put())

    def hang_up(self) -> None:
        """Every client goes away, and the engines drop what they asked for."""

        async def drop() -> None:
            for pod in self._fleet.pods.values():
                pod.engine.abort()

        self._call(drop())

    def offer(self, rate: float, *, kind: RequestClass = CHAT) -> None:
        """From now on requests come at so many a second, as a Poisson process; 0 for none."""

        async def change() -> None:
            if self._offering is not None:
                self._offering.cancel()
            self._offering = self._tasks.create_task(self._offer(rate, kind)) if rate else None

        self._call(change())

    def fail(self, fault: Fault | None, *names: str) -> None:
        """Give pods a fault, or take it away with None: the named ones, or all that are played now."""

        async def change() -> None:
            wanted = names or tuple(self._names.values())
            if unknown := set(wanted) - set(self._names.values()):
                raise ValueError(f"no such pods are played: {', '.join(sorted(unknown))}")
            for uid, name in self._names.items():
                if name in wanted and fault is not None:
                    self._server.faults[uid] = fault
                elif name in wanted:
                    self._server.faults.pop(uid, None)

        self._call(change())

    # The thread

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._error is not None:
            work.close()
        self._check()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_TIMEOUT_S)

    def _check(self) -> None:
        if self._error is not None:
            raise RuntimeError("the fleet has ended") from self._error

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                self._main = self._loop.create_task(self._play())
                self._loop.run_until_complete(self._main)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._up.set()

    async def _play(self) -> None:
        async with self._server, asyncio.TaskGroup() as self._tasks:
            async for pods in watch_pods(self._plane, self._namespace, self._selector):
                await self._follow(pods)
                self._up.set()

    async def _follow(self, pods: Mapping[str, Manifest]) -> None:
        """Let the fleet have the pods that Kubernetes has."""
        now = self._now()
        for uid in self._names.keys() - pods.keys():
            del self._names[uid]
            if uid in self._fleet.pods:
                self._fleet.kill(uid, now)
        await self._server.play()  # addresses are free before others get them
        for uid, pod in pods.items():
            leaving = "deletionTimestamp" in pod["metadata"]
            if uid in self._fleet.pods and leaving:
                self._fleet.drain(uid, self._now(), grace_s=_FOR_EVER_S)
            elif uid not in self._names and not leaving and is_ready(pod):
                self._names[uid] = pod["metadata"]["name"]
                self._addresses.append((pod["status"]["podIP"], self._port))
                self._fleet.add(self._now(), name=uid)
                await self._server.play()

    async def _offer(self, rate: float, kind: RequestClass) -> None:
        began = self._now()
        for request in arrivals(constant(rate), _FOR_EVER_S, mix=[kind], seed=self._seed):
            await asyncio.sleep(began + request.arrival_s - self._now())
            now = self._now()
            self._fleet.send(replace(request, arrival_s=now), now)
