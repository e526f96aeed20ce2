"""`spec.replicas` over the pods of a simulated fleet: what Deployment, scheduler and kubelet do, with their faults."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from inference.simulated import Fleet, PodState, Profile
from inference.simulated import Pod as SimulatedPod
from scaler.backtest.contender import PodPhase
from scaler.backtest.nodes import Nodes
from scaler.policy import Replicas


@dataclass(frozen=True, slots=True)
class PodLuck:
    """How starts go, and how often they go wrong."""

    start_up_s: float
    """Median time from a pod's being placed on a node to its being ready."""
    spread: float = 0.1
    """Standard deviation of the logarithm of that time."""
    crash_share: float = 0.0
    """Share of new pods that crash whenever they have nearly started, and never become ready."""
    slow_share: float = 0.0
    """Share of new pods whose steps take `slow_factor` as long."""
    slow_factor: float = 2.0
    slow_first: int = 0
    """So many of the first pods are slow in any case."""

    def __post_init__(self) -> None:
        for key in ("crash_share", "slow_share"):
            if not 0 <= (value := getattr(self, key)) <= 1:
                raise ValueError(f"{key} is {value}; it must lie between 0 and 1")
        if not 0 <= self.start_up_s < math.inf:
            raise ValueError(f"start_up_s is {self.start_up_s}; it must be a time of 0 or more")


@dataclass(slots=True)
class Replica:
    """One pod of the Deployment, from the asking for it to its end. Times are seconds of the run."""

    number: int
    created: float
    start_up_s: float
    """From being placed to being ready; infinite for one that crashes again and again."""
    profile: Profile
    revision: int = 0
    """Which of the Deployment's templates it was made from."""
    scheduled: float | None = None
    """When it got its node, and its GPU began to cost."""
    gone: float | None = None
    told_to_go: bool = False
    pod: SimulatedPod | None = None
    """None until it is placed."""

    @property
    def name(self) -> str:
        """Its name among all pods of the run."""
        return f"pod-{self.number}"

    @property
    def phase(self) -> PodPhase:
        """Where it is in its life, while it is not gone."""
        if self.pod is None:
            return "pending"
        if self.told_to_go:
            return "terminating"
        return "ready" if self.pod.state is PodState.READY else "starting"

    @property
    def ready(self) -> float | None:
        """When it became ready; None before."""
        return None if self.pod is None or self.pod.state is PodState.STARTING else self.pod.ready

    @property
    def wasted(self) -> bool:
        """Whether it held a GPU and went before it had finished a single request."""
        return self.gone is not None and self.pod is not None and self.pod.engine.metrics.finished == 0


class Deployment:
    """The scale target. `settle` is to be called whenever time has passed."""

    def __init__(self, fleet: Fleet, nodes: Nodes, luck: PodLuck, *, seed: int) -> None:
        self.requested = 0
        """`spec.replicas`"""
        self.warm = 0
        """Replicas beyond those for which there should be a node."""
        self.all: list[Replica] = []
        """Every pod that there ever was, oldest first."""
        self._fleet = fleet
        self._nodes = nodes
        self._luck = luck
        self._seed = seed
        self._live: list[Replica] = []
        self._revision = 0

    def __iter__(self) -> Iterator[Replica]:
        """Give the pods that are not gone, oldest first."""
        return iter(self._live)

    @property
    def replicas(self) -> Replicas:
        """The counts, as a cluster shows them."""
        count = dict.fromkeys(("pending", "starting", "ready", "terminating"), 0)
        for replica in self._live:
            count[replica.phase] += 1
        return Replicas(
            requested=self.requested,
            current=len(self._live) - count["terminating"],
            ready=count["ready"],
            starting=count["starting"],
            terminating=count["terminating"],
            unschedulable=count["pending"],
            room=min(self.warm, self._nodes.free),
        )

    def begin(self, replicas: int) -> None:
        """Let this many pods have started before the run does, on nodes as far as there are any."""
        self.scale(replicas, 0.0)
        for replica in self._live:
            if replica.pod is not None:
                took = replica.start_up_s if math.isfinite(replica.start_up_s) else self._luck.start_up_s
                replica.created, replica.scheduled, replica.pod.ready = -took, -took, 0.0
        self._fleet.advance(0.0)

    def scale(self, replicas: int, now: float) -> None:
        """Set `spec.replicas`. Pods that are not placed go first, then those not ready, then the newest."""
        self.requested = replicas
        staying = self._staying()
        for _ in range(replicas - len(staying)):
            self._create(now)
        most = replicas + (self._surge if self._outdated() else 0)
        order = ("pending", "starting", "ready")
        leaving = sorted(staying, key=lambda replica: (order.index(replica.phase), -replica.number))
        for replica in leaving[: max(0, len(staying) - most)]:
            self._tell_to_go(replica, now)
        self.settle(now)

    def roll(self) -> None:
        """Begin a rolling update: from now on, `settle` replaces every pod that there is."""
        self._revision += 1

    def _roll_on(self, now: float) -> None:
        """Replace pods as `maxSurge` and `maxUnavailable` of 25 % allow, the defaults of Kubernetes."""
        staying, outdated = self._staying(), self._outdated()
        room = self.requested + self._surge - len(staying)
        for _ in range(min(room, self.requested - len(staying) + len(outdated))):
            self._create(now)
        spare = sum(replica.phase == "ready" for replica in staying) - self.requested + self.requested // 4
        for replica in outdated:
            if replica.phase == "ready":
                spare -= 1
                if spare < 0:
                    break
            self._tell_to_go(replica, now)

    @property
    def _surge(self) -> int:
        return math.ceil(self.requested / 4)

    def _staying(self) -> list[Replica]:
        return [replica for replica in self._live if not replica.told_to_go]

    def _outdated(self) -> list[Replica]:
        """Return the pods that an update has yet to replace: those that do not serve first, then the oldest."""
        outdated = [replica for replica in self._staying() if replica.revision < self._revision]
        return sorted(outdated, key=lambda replica: replica.phase == "ready")

    def _tell_to_go(self, replica: Replica, now: float) -> None:
        replica.told_to_go = True
        if replica.pod is not None:
            self._fleet.drain(replica.name, now)

    def settle(self, now: float) -> None:
        """Note who is gone, and place who waits for a node."""
        for replica in self._live:
            if replica.pod is not None and replica.pod.state is PodState.GONE:
                replica.gone = now
                self._nodes.release(now)
            elif replica.pod is None and replica.told_to_go:
                replica.gone = now
        self._live = [replica for replica in self._live if replica.gone is None]
        if self._outdated():
            self._roll_on(now)
        pending = [replica for replica in self._live if replica.pod is None]
        self._nodes.settle(len(pending), now, self.warm)
        for replica in pending:
            if not self._nodes.take():
                break
            replica.scheduled = now
            replica.pod = self._fleet.add(
                now, name=replica.name, profile=replica.profile, start_up_s=replica.start_up_s
            )

    def _create(self, now: float) -> None:
        number = len(self.all)
        # Drawn for the pod of this number alone: the same for every contender, whatever else it does.
        chance = random.Random(f"pod {number} of seed {self._seed}")
        start_up_s = self._luck.start_up_s * chance.lognormvariate(0.0, self._luck.spread)
        crashes, slow = chance.random() < self._luck.crash_share, chance.random() < self._luck.slow_share
        profile = self._fleet.profile
        if slow or number < self._luck.slow_first:
            profile = _slowed(profile, self._luck.slow_factor)
        replica = Replica(number, now, math.inf if crashes else start_up_s, profile, self._revision)
        self.all.append(replica)
        self._live.append(replica)


def _slowed(profile: Profile, factor: float) -> Profile:
    cost = profile.step_time
    return replace(
        profile,
        step_time=replace(
            cost,
            overhead_s=cost.overhead_s * factor,
            per_sequence_s=cost.per_sequence_s * factor,
            per_kv_token_s=cost.per_kv_token_s * factor,
            per_prompt_token_s=cost.per_prompt_token_s * factor,
            per_attention_pair_s=cost.per_attention_pair_s * factor,
        ),
    )
