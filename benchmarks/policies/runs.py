"""Many runs over processes, each played once: what the cache holds is not played again."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from multiprocessing import get_context

from benchmarks.policies import contestants
from benchmarks.policies.cache import Cache
from benchmarks.policies.playing import Job, play
from benchmarks.policies.scenes import TRACES, Scene
from scaler.backtest.scores import Numbers

_NOT_PLAYED = frozenset({"name", "what", "fixed", "start_ups_s", "usual_start_up_s", "seen", "jumps"})
"""What a scene says about tables, not about a run."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be played, and what is known already."""

    keys: Mapping[Job, str]
    known: dict[str, Numbers]

    @property
    def missing(self) -> list[Job]:
        """Return the jobs that are to be played, those with the same traffic one after the other."""
        left = {key: job for job, key in self.keys.items() if key not in self.known}
        return sorted(left.values(), key=lambda job: (job.scene.name, job.part, job.seed, job.start_up_s))

    def __getitem__(self, job: Job) -> Numbers:
        return self.known[self.keys[job]]


def plan(jobs: Iterable[Job], store: Cache) -> Work:
    """Look up what is known."""
    keys = {job: key_of(job) for job in jobs}
    return Work(keys, store.get(set(keys.values())))


def carry_out(work: Work, store: Cache, *, processes: int, on_run: Callable[[], None]) -> None:
    """Play what is missing; each result is kept as soon as it is there, so that an interruption loses none."""
    missing = work.missing
    if not missing:
        return
    with ProcessPoolExecutor(min(processes, len(missing)), get_context("spawn"), initializer=_deaf) as pool:
        futures = {pool.submit(play, job): work.keys[job] for job in missing}
        try:
            for future in as_completed(futures):
                work.known[futures[future]] = future.result()
                store.put(futures[future], future.result())
                on_run()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _deaf() -> None:
    """Leave Ctrl-C to the process that plans."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def key_of(job: Job) -> str:
    """Return the key under which a run is kept: everything that its result depends on."""
    fixed = contestants.fixed_count(job.contestant) is not None
    start_up = 0.0 if fixed else job.start_up_s
    parts = [_played(job.scene), job.part, f"{start_up:g}", _depends_on(job.contestant), str(job.seed)]
    return sha256("\n".join(parts).encode()).hexdigest()


@cache
def _depends_on(contestant: str) -> str:
    return contestants.depends_on(contestant)


@cache
def _played(scene: Scene) -> str:
    """Return what of a scene decides a run, with its traffic's file."""
    values = [f"{each.name}={getattr(scene, each.name)!r}" for each in fields(scene) if each.name not in _NOT_PLAYED]
    file = TRACES / scene.trace
    digest = sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    return ";".join([*values, digest])
