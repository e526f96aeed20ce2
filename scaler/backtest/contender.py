"""What takes part in a backtest: a rule that is shown a fleet and says how many replicas it wants.

Our own policy and every rival are contenders, and the plant treats all alike. A contender says how often it looks and
how old what it sees is; the plant does the waiting, so that a rule is only its formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from inference.simulated import Outcome, Profile, Request
from scaler.backtest.hpa import SYNC_S, Behavior, Hpa, ScalingPolicy
from scaler.exposition.sample import Sample
from scaler.policy import Decision, Observation

PodPhase = Literal["pending", "starting", "ready", "terminating"]
"""`pending` pods have no node yet."""


@dataclass(frozen=True, slots=True)
class SeenPod:
    """One pod, as the cluster and its own metrics page show it."""

    name: str
    phase: PodPhase
    sample: Sample | None
    """What its page said at the last scrape: gauges, counters and histograms since its start. None unless ready."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a router in front of the pods has counted since the beginning, and what it holds now."""

    requests: int = 0
    """Requests that arrived."""
    prompt_tokens: int = 0
    """Prompt tokens of the requests that arrived."""
    cached_tokens: int = 0
    """Part of `prompt_tokens` that a prefix cache may hold."""
    waiting: int = 0
    """Requests that it holds now, since no pod is ready."""
    waiting_prompt_tokens: int = 0
    """Prompt tokens of those that it holds now."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a contender is shown. Pods' pages, load and gateway are those of the last scrape; replicas are of now."""

    time: float
    """Seconds since the beginning of the run."""
    scraped: float
    """When the pages were read: `time`, or earlier by up to the contender's `scrape_interval_s`."""
    observation: Observation
    """As `scaler.policy.decide` takes it. Its `load.waiting` has the requests that the gateway holds, too."""
    pods: Sequence[SeenPod]
    """All pods but those that are gone, oldest first."""
    gateway: Gateway


@dataclass(frozen=True, slots=True)
class Want:
    """An answer with more to say than a number."""

    value: float
    """The metric value of an AverageValue target of 1: wanted replicas, as a real number."""
    at_once: int | None = None
    """Replicas to ask for now, without waiting for the HPA; only upwards."""
    active: bool | None = None
    """For KEDA, between zero and one replica. None: active while the value is above 0."""
    warm: int = 0
    """Replicas beyond the wanted ones for which there should be a node."""
    reason: str = ""
    """Why the count is what it is."""
    decision: Decision | None = None
    """The whole decision, where `scaler.policy.decide` made it."""


class Contender(Protocol):
    """A rule with its memory: made anew for every run, and called in order of time.

    `Defaults` below has what most contenders say to the attributes.
    """

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    @property
    def interval_s(self) -> float | None:
        """Seconds between two looks; the answer stands in between. None: it is asked by each sync of the HPA."""
        ...

    @property
    def scrape_interval_s(self) -> float:
        """Seconds between two scrapes of the pods' pages by whatever it reads from; 0: it reads them itself."""
        ...

    @property
    def look_back_s(self) -> float:
        """Window of the rates and quantiles in `Seen.observation.load`."""
        ...

    @property
    def sync_s(self) -> float:
        """Seconds between two moves of the replica count: the HPA's, or its own where it needs no HPA."""
        ...

    @property
    def pushes(self) -> bool:
        """Whether KEDA hears from it at once that there is something to do (`external-push`), or polls every 30 s."""
        ...

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the HPA that its authors recommend; `unbraked` where it moves the count by itself."""
        ...

    def want(self, seen: Seen) -> Want | float | None:
        """Return the wanted replicas; None where there is no answer, and the count stays."""
        ...


class Defaults:
    """What most rules that KEDA's prometheus trigger carries have in common. To be inherited."""

    interval_s: float | None = None
    scrape_interval_s: float = 15.0
    look_back_s: float = 60.0
    sync_s: float = SYNC_S
    pushes: bool = False

    def hpa(self, minimum: int, maximum: int) -> Hpa:
        """Return the HPA as Kubernetes fills it in."""
        return Hpa(minimum, maximum)


def unbraked(minimum: int, maximum: int) -> Hpa:
    """Return an HPA that goes where it is told: no tolerance, no window, no limit of rate."""
    free = Behavior(0.0, (ScalingPolicy("Pods", maximum, 1.0),), tolerance=0.0)
    return Hpa(minimum, maximum, up=free, down=free)


@dataclass(frozen=True, slots=True)
class Setup:
    """What is known before a run, to whoever sets up an autoscaler for it."""

    minimum: int
    maximum: int
    start_up_s: float
    """Median of the time from a pod's creation to its being ready, node included."""
    profile: Profile
    """The engine: KV room, batch slots, step times. What offline calibration would find out."""
    ttft_slo_s: float
    tpot_slo_s: float
    requests: Sequence[Request]
    """The whole traffic: for the clairvoyant alone."""
    rehearse: Callable[[Maker], Sequence[Outcome]] | None = None
    """Plays this very run under another contender, as often as one likes: for the clairvoyant alone."""


Maker = Callable[[Setup], Contender]
"""Makes a contender for one run."""

Makers = Mapping[str, Maker]
"""By name. `scaler.backtest.rivals` has `RIVALS: Makers`, each with its authors' settings."""
