"""Results as tables for a terminal, and as objects for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from scaler.backtest.run import Result
from scaler.backtest.scores import Numbers, pareto

_COLUMNS = ("policy", "SLO met", "TTFT p95", "p99", "replicas", "GPU-h", "moves", "wasted")


def front(results: Sequence[Result]) -> list[bool]:
    """Tell of each result of one scene whether it is on the Pareto front of attainment and GPU-hours."""
    return pareto([(result.means["attainment"]["both"] or 0.0, result.means["gpu_hours"]) for result in results])


def table(results: Sequence[Result]) -> Table:
    """Return the table of one scene."""
    seeds = len(results[0].runs)
    intervals = " ± is half the 95 % interval over seeds." if seeds > 1 else ""
    plant = results[0].scene.plant
    made = Table(
        title=f"{results[0].scene.title}, {plant.profile.name}, {plant.minimum} to {plant.maximum} replicas, "
        f"{seeds} {'seeds' if seeds > 1 else 'seed'}",
        caption=f"SLO: first token within {plant.ttft_slo_s:g} s, then {plant.tpot_slo_s * 1000:g} ms a token; of all "
        f"requests.{intervals} wasted: pods that went before they finished a request. ●: nobody here attains more "
        "for less.",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in _COLUMNS:
        first = name == _COLUMNS[0]
        made.add_column(name, justify="left" if first else "right", min_width=15 if first else None, no_wrap=not first)
    for result, best in zip(results, front(results), strict=True):
        made.add_row(f"{'●' if best else ' '} {result.policy}", *_cells(result.means, result.half_widths))
    return made


def _cells(means: Numbers, widths: Numbers) -> list[str]:
    attained, ttft = means["attainment"], means["ttft"]
    return [
        _share(attained["both"], widths["attainment"]["both"]),
        *("-" if ttft[key] is None else f"{ttft[key]:.2f}s" for key in ("p95", "p99")),
        f"{means['average_replicas']:.2f}",
        f"{means['gpu_hours']:.2f}",
        f"{means['scale_events']:.1f}",
        f"{means['wasted_starts']:.1f}",
    ]


def _share(share: float | None, width: float | None) -> str:
    if share is None:
        return "-"
    return f"{share:.1%}" if width is None else f"{share:.1%} ±{100 * width:.1f}"


def as_object(result: Result) -> dict[str, Any]:
    """Return a result for JSON: shares 0 to 1, times in seconds; intervals as half widths under `half_width_95`."""
    plant = result.scene.plant
    return {
        "trace": result.scene.trace.name,
        "policy": result.policy,
        "start_up_s": plant.luck.start_up_s,
        "profile": plant.profile.name,
        "minimum": plant.minimum,
        "maximum": plant.maximum,
        "troubles": list(result.scene.troubles),
        "seeds": len(result.runs),
        **result.means,
        "half_width_95": result.half_widths,
    }
