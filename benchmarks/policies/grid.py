"""The grid: who plays where, at which start-ups, with how many seeds; and what came out, sorted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.policies.contestants import ADAPTIVE, everybody, fixed_count
from benchmarks.policies.playing import Job
from benchmarks.policies.runs import Work
from benchmarks.policies.scenes import AT_REST_S, VERDICT_SEEDS, Scene
from scaler.backtest.scores import Numbers, half_width, over_seeds

FEW = 2
"""Seeds of all but our own policy and the fixed counts."""
QUICK = 2
"""Seeds of everybody in the quick grid."""
CLIFF_S = 180.0


@dataclass(frozen=True, slots=True)
class Place:
    """One table: a scene with a start-up time."""

    scene: Scene
    start_up_s: float


@dataclass(frozen=True)
class Standing:
    """A contestant in a place, over its seeds."""

    contestant: str
    runs: Sequence[Numbers]

    @cached_property
    def means(self) -> Numbers:
        """Means over the seeds."""
        return over_seeds(self.runs)

    @cached_property
    def half_widths(self) -> Numbers:
        """Half widths of the means' 95 % intervals; None from a single seed."""
        return over_seeds(self.runs, half_width)

    @property
    def attained(self) -> float:
        """Share of all requests that met both objectives."""
        return float(self.means["attainment"]["both"])

    @property
    def gpu_hours(self) -> float:
        """What it cost."""
        return float(self.means["gpu_hours"])

    def on(self, seeds: int) -> Standing:
        """Return the same on its first seeds, so that two are compared on those that both played."""
        return Standing(self.contestant, self.runs[:seeds])


Standings = Mapping[Place, Sequence[Standing]]
"""All who play in a place, in the order of its table."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What is to be played for the tables of some scenes."""

    scenes: Sequence[Scene]
    quick: bool = False
    """Only at the usual start-ups, with few seeds."""

    def places(self) -> list[Place]:
        """Return the places that get a table."""
        return [
            Place(scene, start_up_s)
            for scene in self.scenes
            for start_up_s in ([scene.usual_start_up_s] if self.quick else scene.start_ups_s)
        ]

    def asides(self) -> list[Place]:
        """Return the places in which our policy plays alone, to find a cliff."""
        beside = {Place(scene, start_up_s) for scene in self.scenes for start_up_s in (AT_REST_S, CLIFF_S)}
        return sorted(beside - set(self.places()), key=lambda place: (place.scene.name, place.start_up_s))

    def jobs(self) -> list[Job]:
        """Return all runs."""
        return [job for place in (*self.places(), *self.asides()) for who in self._who(place) for job in who]

    def standings(self, work: Work) -> Standings:
        """Sort what was played."""
        return {
            place: [Standing(jobs[0].contestant, [work[job] for job in jobs]) for jobs in self._who(place)]
            for place in (*self.places(), *self.asides())
        }

    def _who(self, place: Place) -> Iterable[list[Job]]:
        contestants = everybody(place.scene, place.start_up_s) if place in self.places() else [ADAPTIVE]
        return (
            [Job(place.scene, "verdict", place.start_up_s, each, seed) for seed in self._seeds(each)]
            for each in contestants
        )

    def _seeds(self, contestant: str) -> Sequence[int]:
        if self.quick:
            return VERDICT_SEEDS[:QUICK]
        plays_all = contestant == ADAPTIVE or fixed_count(contestant) is not None
        return VERDICT_SEEDS if plays_all else VERDICT_SEEDS[:FEW]
