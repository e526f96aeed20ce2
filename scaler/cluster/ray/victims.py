"""Which workers go when there are too many: those that lose the least."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from scaler.cluster.model import Phase
from scaler.cluster.ray.model import Worker


@dataclass(frozen=True, slots=True)
class Replica:
    """The pods that come and go together."""

    workers: tuple[Worker, ...]

    @property
    def stays(self) -> bool:
        """Whether none of its pods is on the way out."""
        return all(worker.phase is not Phase.TERMINATING for worker in self.workers)

    @property
    def serves(self) -> bool:
        """Whether all of its pods are ready."""
        return all(worker.phase is Phase.READY for worker in self.workers)

    @property
    def names(self) -> frozenset[str]:
        """Its pods."""
        return frozenset(worker.name for worker in self.workers)


def replicas(workers: Sequence[Worker], hosts: int) -> list[Replica]:
    """Put the pods of a group together into replicas of `hosts` pods.

    Pods that do not say what they belong to are taken in the order of their creation, as KubeRay made them.
    """
    by_name: dict[str, list[Worker]] = {}
    nameless: list[Worker] = []
    for worker in sorted(workers, key=lambda worker: (worker.created, worker.name)):
        if worker.replica and hosts > 1:
            by_name.setdefault(worker.replica, []).append(worker)
        else:
            nameless.append(worker)
    # What goes is no part of what stays, else one pod on its way out would take another one along.
    lots = [[w for w in nameless if (w.phase is Phase.TERMINATING) is going] for going in (False, True)]
    chunks = [lot[i : i + hosts] for lot in lots for i in range(0, len(lot), hosts)]
    return [Replica(tuple(members)) for members in (*by_name.values(), *chunks)]


def choose(
    present: Sequence[Replica], surplus: int, load: Mapping[str, float], named: Collection[str] = ()
) -> list[Replica]:
    """Return the `surplus` replicas that are to go, of those that stay so far.

    First come those that were `named` before, so that nobody else goes when KubeRay is slow; then those that do not
    serve yet, which lose nothing; then the idle; then by the requests in them. `load` has the requests in a pod, of
    several hosts perhaps only in the one that is read; a replica that is not in it is unknown, and goes last. Of equals
    the newest goes.
    """

    def loss(replica: Replica) -> tuple[bool, bool, float, float]:
        kept = not replica.names <= frozenset(named)
        created = max(worker.created for worker in replica.workers)
        return kept, replica.serves, _load(replica, load), -created

    return sorted((replica for replica in present if replica.stays), key=loss)[: max(0, surplus)]


def _load(replica: Replica, load: Mapping[str, float]) -> float:
    if not replica.serves:
        return 0.0
    known = [load[name] for name in replica.names if name in load]
    return sum(known) if known else float("inf")
