"""What each idea of the adaptive policy is worth: it is switched off by its setting, and the rest stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.policies.contestants import ADAPTIVE
from benchmarks.policies.playing import Job
from benchmarks.policies.runs import Work
from benchmarks.policies.scenes import TUNING_SEEDS, Scene
from benchmarks.policies.tables import Table
from scaler.backtest.scores import mean

WITHOUT: Mapping[str, str] = {
    "forecast over the start-up": "lookAhead=0",
    "margin from past errors": "costWeight=100",  # all of the load may come on top
    "learned capacity": "targetOngoingRequests=12",
    "objectives of latency": "ttftSlo=1h,itlSlo=1h",
    "credit for what is starting": "startingCredit=false",
    "hold before scaling down": "downscaleDelay=0",
}
"""Idea → the setting that takes it away."""
SEEDS = TUNING_SEEDS[:4]


def ablate(play: Callable[[Sequence[Job]], Work], scenes: Sequence[Scene]) -> Table:
    """Play our policy with each idea switched off, on parts that may be tuned on, and tell what that costs."""
    texts = {idea: f"{ADAPTIVE},{setting}" for idea, setting in WITHOUT.items()}
    work = play([_job(scene, text, seed) for scene in scenes for text in (ADAPTIVE, *texts.values()) for seed in SEEDS])
    rows = []
    for scene in scenes:
        whole = _point(work, scene, ADAPTIVE)
        changes = [_change(whole, _point(work, scene, text)) for text in texts.values()]
        rows.append((scene.name, f"{100 * whole[0]:.1f} @ {whole[1]:.2f}", *changes))
    columns = ("trace", "adaptive, % @ average replicas", *(f"without the {idea}" for idea in texts))
    return Table("What each idea is worth: points of attainment, average replicas", columns, rows)


def _job(scene: Scene, text: str, seed: int) -> Job:
    return Job(scene, "tuning", scene.usual_start_up_s, text, seed)


def _point(work: Work, scene: Scene, text: str) -> tuple[float, float]:
    runs = [work[_job(scene, text, seed)] for seed in SEEDS]
    return mean([run["attainment"]["both"] for run in runs]), mean([run["average_replicas"] for run in runs])


def _change(whole: tuple[float, float], less: tuple[float, float]) -> str:
    return f"{100 * (less[0] - whole[0]):+.1f}, {less[1] - whole[1]:+.2f}"
