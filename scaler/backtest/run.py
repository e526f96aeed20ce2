"""Many runs, spread over processes. The same jobs give the same results, in whatever order they are played."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import active_children, get_context

from scaler.backtest.contender import Maker
from scaler.backtest.plant import Plant
from scaler.backtest.scores import Numbers, half_width, numbers, over_seeds
from scaler.backtest.story import Story, story
from scaler.backtest.traces import Trace


@dataclass(frozen=True, slots=True)
class Scene:
    """Traffic on a plant."""

    trace: Trace
    plant: Plant
    troubles: tuple[str, ...] = ()
    """Names of those that the plant has, for people."""

    @property
    def title(self) -> str:
        """What it is called in tables."""
        troubles = f", with {', '.join(self.troubles)}" if self.troubles else ""
        return f"{self.trace.name}, start-up {self.plant.luck.start_up_s:g} s{troubles}"


@dataclass(frozen=True, slots=True)
class Entrant:
    """A contender by the name that it was asked for by."""

    name: str
    maker: Maker


@dataclass(frozen=True, slots=True)
class Result:
    """A contender in a scene, over all seeds."""

    scene: Scene
    policy: str
    runs: Sequence[Numbers]
    """One for each seed, in their order."""
    story: Story
    """Of the first seed."""

    @property
    def means(self) -> Numbers:
        """Means over the seeds."""
        return over_seeds(self.runs)

    @property
    def half_widths(self) -> Numbers:
        """Half widths of the means' 95 % intervals; None from a single seed."""
        return over_seeds(self.runs, half_width)


@dataclass(frozen=True, slots=True)
class _Job:
    scene: Scene
    maker: Maker
    seed: int
    tell: bool
    """Whether its story is wanted."""


def play(
    scenes: Sequence[Scene],
    entrants: Sequence[Entrant],
    seeds: Sequence[int],
    *,
    processes: int = 1,
    on_run: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Play every entrant in every scene with every seed; `on_run` is called after each run.

    Makers must be picklable where there is more than one process. Raises what a trace raises.
    """
    pairs = [(scene, entrant) for scene in scenes for entrant in entrants]
    jobs = [_Job(scene, entrant.maker, seed, seed == seeds[0]) for scene, entrant in pairs for seed in seeds]
    done = _all(jobs, min(processes, len(jobs)), on_run)
    results = []
    for i, (scene, entrant) in enumerate(pairs):
        runs = done[i * len(seeds) : (i + 1) * len(seeds)]
        told = runs[0][1]
        assert told is not None
        results.append(Result(scene, entrant.name, [run for run, _ in runs], told))
    return results


def _all(jobs: Sequence[_Job], processes: int, on_run: Callable[[], None]) -> list[tuple[Numbers, Story | None]]:
    if processes <= 1:
        done = []
        for job in jobs:
            done.append(_play(job))
            on_run()
        return done
    # Fresh processes: a fork of one that draws a progress bar in a thread may hang.
    with ProcessPoolExecutor(processes, get_context("spawn"), _leave_ctrl_c_to_the_parent) as pool:
        futures = [pool.submit(_play, job) for job in jobs]
        try:
            for future in as_completed(futures):
                future.result()
                on_run()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():  # a run under way may take minutes more
                child.terminate()
            raise
        return [future.result() for future in futures]


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _play(job: _Job) -> tuple[Numbers, Story | None]:
    trace, plant = job.scene.trace, job.scene.plant
    run = plant.play(trace.requests(job.seed), trace.duration_s, job.maker, seed=job.seed)
    return numbers(run, plant), story(run, plant) if job.tell else None
