"""Finds each rival's main numbers by a search over a grid, on the parts of the scenes that may be tuned on.

What is taken is what an owner would take: the cheapest setting that comes within a hundredth of what can be attained
at all; where none does, the one that attains most.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

from benchmarks.policies.contestants import TUNED, with_settings
from benchmarks.policies.playing import Job
from benchmarks.policies.runs import Work
from benchmarks.policies.scenes import SCENES, TUNING_SEEDS, Scene
from scaler.backtest.scores import mean

START_UP_S = 120.0
"""The settings are searched at this start-up and judged at all."""
SEEDS = TUNING_SEEDS[:2]
_NEAR = 0.99

Settings = Mapping[str, float]


def _grid(**values: Sequence[float]) -> list[Settings]:
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


_BANDS = ((0.4, 0.25), (0.55, 0.40), (0.7, 0.5), (0.85, 0.65))
CANDIDATES: Mapping[str, Sequence[Settings]] = {
    "keda-queue": _grid(threshold=(0.5, 1, 2, 5, 10)),
    "llm-d-queue": _grid(running=(8, 12, 16, 24, 32, 48, 64)),
    "llm-d-queue-guard": _grid(running=(8, 12, 16, 24, 32, 48, 64)),
    "llm-d-slo": [{"up": up, "down": down} for up, down in _BANDS],
    "llm-d-tokens": _grid(queue_s=(0.5, 1.5), kv_usage=(0.4, 0.6, 0.8)),
    "wva-v1": _grid(kv_threshold=(0.5, 0.65, 0.8), queue_spare=(3, 4.5)),
    "wva-v2": [{"scale_up_threshold": up, "scale_down_boundary": down} for up, down in ((0.5, 0.35), *_BANDS[1:])],
    "knative": _grid(target=(6, 10, 16, 24, 36, 50)),
    "aibrix-apa": _grid(target=(0.2, 0.35, 0.5, 0.65, 0.8)),
    "aibrix-kpa": _grid(target=(0.2, 0.35, 0.5, 0.65, 0.8)),
    "ray-serve": _grid(target_ongoing_requests=(6, 10, 16, 24, 36), downscale_delay_s=(120, 600)),
    "dynamo-throughput": [{"up": up, "down": down} for up, down in ((0.4, 0.1), (0.6, 0.3), (0.8, 0.45), (1.0, 0.6))],
    "kaito": _grid(queue_up=(1, 5), queue_time_up_s=(0.3, 2)),
}
"""What is tried of each rival: its one or two main numbers, around its authors' values."""


def tune(play: Callable[[Sequence[Job]], Work], scenes: Sequence[Scene]) -> dict[str, object]:
    """Search, and return scene → start-up → rival → settings."""
    wanted = [
        Job(scene, "tuning", START_UP_S, text, seed) for scene in scenes for text in _texts(scene) for seed in SEEDS
    ]
    work = play(wanted)
    return {scene.name: {f"{START_UP_S:g}": _best(scene, work)} for scene in scenes}


def write(found: Mapping[str, object], path: Path = TUNED) -> None:
    """Put what was found into the file that is committed; other scenes in it stay."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    together = {**kept, **found}
    path.write_text(json.dumps({n: together[n] for n in SCENES if n in together}, indent=1) + "\n", encoding="utf-8")


def _texts(scene: Scene) -> list[str]:
    tried = [with_settings(rival, values) for rival, grid in CANDIDATES.items() for values in grid]
    return [*tried, f"static-{scene.maximum}"]


def _best(scene: Scene, work: Work) -> dict[str, Settings]:
    points = {text: _point(scene, text, work) for text in _texts(scene)}
    reachable = max(attained for attained, _ in points.values())
    return {
        rival: choose([(values, *points[with_settings(rival, values)]) for values in grid], reachable)
        for rival, grid in CANDIDATES.items()
    }


def _point(scene: Scene, text: str, work: Work) -> tuple[float, float]:
    """Return mean attainment and mean GPU-hours."""
    runs = [work[Job(scene, "tuning", START_UP_S, text, seed)] for seed in SEEDS]
    return mean([run["attainment"]["both"] for run in runs]), mean([run["gpu_hours"] for run in runs])


def choose(tried: Sequence[tuple[Settings, float, float]], reachable: float) -> Settings:
    """Return the settings of the best of (settings, attainment, GPU-hours)."""
    good = [each for each in tried if each[1] >= _NEAR * reachable]
    if good:
        return min(good, key=lambda each: (each[2], -each[1]))[0]
    return max(tried, key=lambda each: (each[1], -each[2]))[0]
