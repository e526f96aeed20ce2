"""One run: a contestant in a scene with a seed, and its numbers. This is what the processes do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from benchmarks.policies import contestants
from benchmarks.policies.scenes import Part, Scene, requests
from scaler.backtest.contender import Contender, Maker, Seen, Want
from scaler.backtest.plant import Plant, Run
from scaler.backtest.scores import Numbers, Requests, numbers

SETTLED_S = 240.0
"""From then on even a start-up of 180 s that was asked for at the beginning is over, slow ones included."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is played. What never moves is there from the beginning, so its start-up does not matter."""

    scene: Scene
    part: Part
    start_up_s: float
    contestant: str
    seed: int


def play(job: Job) -> Numbers:
    """Return the numbers of a run.

    Beside those of the product: `settled`, the attainment of both objectives by the requests that came after
    `SETTLED_S`, and `answered_s`, how long after the scene's pulse began a higher count was wanted.
    """
    scene, plant = job.scene, job.scene.plant(job.start_up_s)
    if (count := contestants.fixed_count(job.contestant)) is not None:
        plant = replace(plant, initial=count)
    wants: list[tuple[float, float]] = []
    maker = contestants.maker(job.contestant)
    run = plant.play(
        requests(scene, job.part, job.seed),
        scene.traffic(job.part).duration_s,
        maker if scene.pulse_s is None else _overheard(maker, wants),
        seed=job.seed,
    )
    answered = None if scene.pulse_s is None else _answered_s(wants, scene.pulse_s)
    return {**numbers(run, plant), "settled": _settled(run, plant), "answered_s": answered}


def _settled(run: Run, plant: Plant) -> float | None:
    all_requests = Requests.of(run.outcomes)
    met = (all_requests.ttft_s <= plant.ttft_slo_s) & (all_requests.tpot_s <= plant.tpot_slo_s)
    late = met[all_requests.arrival_s >= SETTLED_S]
    return float(np.mean(late)) if len(late) else None


def _overheard(maker: Maker, wants: list[tuple[float, float]]) -> Maker:
    """Return the maker of a contender that also writes down what it wants: (time, replicas)."""
    return lambda setup: cast(Contender, _Overheard(maker(setup), wants))


class _Overheard:
    def __init__(self, contender: Contender, wants: list[tuple[float, float]]) -> None:
        self._contender = contender
        self._wants = wants

    def __getattr__(self, name: str) -> Any:
        return getattr(self._contender, name)

    def want(self, seen: Seen) -> Want | float | None:
        answer = self._contender.want(seen)
        if answer is not None:
            self._wants.append((seen.time, answer.value if isinstance(answer, Want) else answer))
        return answer


def _answered_s(wants: list[tuple[float, float]], pulse_s: float) -> float | None:
    """Return the time from the pulse's beginning to the first want above the one before it; None without one."""
    before = max((value for time, value in wants if pulse_s - 60 <= time < pulse_s), default=0.0)
    return next((time - pulse_s for time, value in wants if time >= pulse_s and value > before), None)
