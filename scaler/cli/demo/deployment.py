"""A stand-in for a Deployment: `spec.replicas` over the pods of a simulated fleet, seen as a cluster would show it."""

from __future__ import annotations

from inference.simulated import Pod as SimulatedPod
from inference.simulated import PodState
from inference.simulated.server import FleetServer
from scaler.cli.demo.scenario import Scenario
from scaler.cluster.model import Phase, Pod, Workload
from scaler.targets import Clock

_PHASES = {
    PodState.STARTING: Phase.STARTING,
    PodState.READY: Phase.READY,
    PodState.TERMINATING: Phase.TERMINATING,
}


class Deployment:
    """The scale target of the demo; it is the scaler's `Discovery` too."""

    def __init__(self, server: FleetServer, scenario: Scenario, clock: Clock) -> None:
        self._server = server
        self._scenario = scenario
        self._clock = clock
        self._begin = clock.utc() - server.fleet.now
        self.requested = scenario.minimum

    @property
    def current(self) -> int:
        """`status.replicas`: pods that are there and stay."""
        fleet = self._server.fleet
        return fleet.count(PodState.STARTING) + fleet.count(PodState.READY)

    def scale(self, replicas: int, now: float) -> None:
        """Set `spec.replicas` at `now` (seconds of the fleet)."""
        self.requested = replicas
        self._server.fleet.scale(replicas, now)

    def workload(self, namespace: str, name: str) -> Workload:
        """See the pods; `namespace` and `name` make no difference, there is one Deployment."""
        del namespace, name
        return Workload(
            requested=self.requested,
            current=self.current,
            pods=tuple(self._pod(pod) for pod in self._server.fleet.pods.values()),
            minimum=self._scenario.minimum,
            maximum=self._scenario.maximum,
            tolerance_up=0.0,
            tolerance_down=0.0,
            seen_at=self._clock.utc(),
        )

    def _pod(self, pod: SimulatedPod) -> Pod:
        host, _, port = self._server.address(pod.name).rpartition(":")
        listens = port != "0"
        phase = _PHASES[pod.state] if listens or pod.state is not PodState.READY else Phase.STARTING
        ready_at = self._begin + pod.ready if phase is not Phase.STARTING else None
        created = self._begin + pod.ready - self._scenario.start_up_s  # the first ones started before the demo did
        return Pod(
            name=pod.name,
            uid=pod.name,
            phase=phase,
            since=created if ready_at is None else ready_at,
            created=created,
            ready_at=ready_at,
            ip=host,
            ports={"http": int(port)},
        )
