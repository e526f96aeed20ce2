"""The nodes under the pods: how many GPUs there are, and how long a new one takes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

IDLE_S = 600.0
"""An unused node is given back after so long (the Cluster Autoscaler's `--scale-down-unneeded-time`)."""
_SPREAD = 0.1
"""Standard deviation of the logarithm of a node's time."""


@dataclass(frozen=True, slots=True)
class NodePool:
    """A pool that an autoscaler of nodes grows and shrinks. One node carries one replica."""

    most: int
    """Nodes that can ever be had: the GPU cap."""
    warm: int
    """Nodes that stand at the beginning."""
    node_s: float
    """Median of the time from asking for a node to its taking a pod."""

    def __post_init__(self) -> None:
        if not 0 <= self.warm <= self.most:
            raise ValueError(f"{self.warm} warm nodes are wrong with {self.most} GPUs; right are 0 to {self.most}")


@dataclass(slots=True)
class Nodes:
    """The nodes of one run. `None` as a pool is a cluster that has room for every pod at once."""

    pool: NodePool | None
    chance: random.Random
    paid_s: float = 0.0
    """How long nodes were paid for until now, all together: from being asked for until given back, used or not."""
    _used: int = 0
    _free_since: list[float] = field(default_factory=list)
    _coming: list[float] = field(default_factory=list)
    """When the nodes that were asked for arrive."""
    _now: float = 0.0

    def __post_init__(self) -> None:
        if self.pool is not None:
            self._free_since = [0.0] * self.pool.warm

    @property
    def free(self) -> int:
        """Nodes that would take a pod now."""
        return len(self._free_since)

    def take(self) -> bool:
        """Place a pod, if a node is free; the one that was used last first."""
        if self.pool is None:
            return True
        if not self._free_since:
            return False
        self._free_since.pop()
        self._used += 1
        return True

    def release(self, now: float) -> None:
        """Give a pod's node back to the pool."""
        if self.pool is not None:
            self._used -= 1
            self._free_since.append(now)

    def settle(self, pending: int, now: float, warm: int = 0) -> None:
        """Let nodes arrive, give back idle ones, and ask for as many as pending pods lack, up to the cap.

        `warm` nodes beyond those are asked for too, and kept however idle.
        """
        if self.pool is None:
            return
        self.paid_s += (now - self._now) * self._all
        self._now = now
        self._free_since += [now for due in self._coming if due <= now]
        self._coming = [due for due in self._coming if due > now]
        idle = [since for since in self._free_since if now - since >= IDLE_S]
        for since in idle[: max(0, self.free - warm)]:
            self._free_since.remove(since)
        lacking = pending + warm - self.free - len(self._coming)
        for _ in range(min(lacking, self.pool.most - self._all)):
            self._coming.append(now + self.pool.node_s * self.chance.lognormvariate(0.0, _SPREAD))

    @property
    def _all(self) -> int:
        return self._used + self.free + len(self._coming)
