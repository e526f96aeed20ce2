"""How well the pods' pages can be read: noise on gauges, pages that are old, pods that do not answer for a while."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from inference.simulated import Engine
from scaler.backtest.samples import sample
from scaler.exposition.sample import Sample
from scaler.sources.source import Unknown


@dataclass(frozen=True, slots=True)
class Sight:
    """What stands between the pods and who reads them. As it is made, nothing does."""

    noise: float = 0.0
    """Standard deviation of the logarithm of a factor on every gauge; counters are exact."""
    stale_s: float = 0.0
    """A pod's page is made anew only so often, each pod's in its own turn."""
    missing_share: float = 0.0
    """Share of the time for which a pod does not answer."""
    missing_s: float = 10.0
    """For how long it does not, each time."""


class Reader:
    """Reads engines through a sight. What it meets depends on the seed, the pod and the time alone."""

    def __init__(self, sight: Sight, seed: int) -> None:
        self._sight = sight
        self._seed = seed
        self._pages: dict[str, tuple[int, Sample]] = {}

    def read(self, pod: str, engine: Engine, now: float) -> Sample | Unknown:
        """Return what a pod says at a time (seconds of the run), if it answers."""
        sight = self._sight
        if sight.missing_share and self._chance("missing", pod, now // sight.missing_s).random() < sight.missing_share:
            return Unknown("no answer")
        if not sight.stale_s:
            return self._blurred(pod, sample(engine), now)
        turn = int(now / sight.stale_s + self._chance("turn", pod).random())
        if pod not in self._pages or self._pages[pod][0] != turn:
            self._pages[pod] = turn, self._blurred(pod, sample(engine), now)
        return self._pages[pod][1]

    def _blurred(self, pod: str, page: Sample, now: float) -> Sample:
        if not self._sight.noise:
            return page
        chance = self._chance("noise", pod, now)

        def blur(value: float | None) -> float:
            return (value or 0.0) * math.exp(chance.gauss(0.0, self._sight.noise))

        return replace(
            page,
            waiting=float(round(blur(page.waiting))),
            running=float(round(blur(page.running))),
            kv_cache_usage=min(1.0, blur(page.kv_cache_usage)),
        )

    def _chance(self, *of: object) -> random.Random:
        return random.Random(f"{of} of seed {self._seed}")
