"""Results as tables for a terminal, and as objects for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from scaler.backtest.run import Result
from scaler.backtest.scores import Numbers, pareto

REFERENCE = "oracle"
"""It knows the future: nobody competes with it, so it is on no front."""
_NUMBERS = ("met", "±", "p95", "p99", "pods", "GPU-h", "node-h", "moves", "wasted")


def front(results: Sequence[Result]) -> list[bool]:
    """Tell of each result of one scene whether it is on the Pareto front of attainment and GPU-hours."""
    competing = [result for result in results if result.policy != REFERENCE]
    points = [(result.means["attainment"]["both"] or 0.0, result.means["gpu_hours"]) for result in competing]
    best = iter(pareto(points))
    return [result.policy != REFERENCE and next(best) for result in results]


def table(results: Sequence[Result]) -> Table:
    """Return the table of one scene. It fits into 80 columns: long names of policies take several lines."""
    seeds = len(results[0].runs)
    plant = results[0].scene.plant
    some_infeasible = any(not _all_feasible(result.means) for result in results)
    made = Table(
        title=f"{results[0].scene.title}, {plant.profile.name}, {plant.minimum} to {plant.maximum} replicas, "
        f"{seeds} {'seeds' if seeds > 1 else 'seed'}",
        caption=_caption(results, some_infeasible),
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    made.add_column("", no_wrap=True)
    made.add_column("policy", overflow="fold")
    left_out = {"±"} if seeds == 1 else set()
    if plant.nodes is None:
        left_out.add("node-h")
    names = [name for name in _NUMBERS if name not in left_out]
    if some_infeasible:
        names.insert(1, "feasible")
    for name in names:
        made.add_column(name, justify="right", no_wrap=True)
    for result, best in zip(results, front(results), strict=True):
        cells = _cells(result.means, result.half_widths)
        mark = "◇" if result.policy == REFERENCE else "●" if best else " "
        made.add_row(mark, result.policy.replace(",", ", "), *(cells[name] for name in names))
    return made


def _caption(results: Sequence[Result], some_infeasible: bool) -> str:
    plant, policies = results[0].scene.plant, [result.policy for result in results]
    said = [
        f"met: first token within {plant.ttft_slo_s:g} s, then {plant.tpot_slo_s * 1000:g} ms a token, of all requests"
    ]
    if some_infeasible:
        said.append("feasible: the same of those that would meet it alone on an idle replica")
    if len(results[0].runs) > 1:
        said.append("±: half the 95 % interval over seeds")
    said.append("p95, p99: time to first token")
    said.append("pods: replicas with a GPU, on average")
    if plant.nodes is not None:
        said.append("node-h: nodes paid for, idle ones too")
    said.append("wasted: pods that went before they finished a request")
    said.append("●: nobody here meets more for less")
    if REFERENCE in policies:
        said.append("◇: knows the future, for reference")
    return "; ".join(said) + "."


def _all_feasible(means: Numbers) -> bool:
    return bool(means["requests"]["feasible"] == means["requests"]["all"])


def _cells(means: Numbers, widths: Numbers) -> dict[str, str]:
    ttft, width = means["ttft"], widths["attainment"]["both"]
    return {
        "met": _share(means["attainment"]["both"]),
        "feasible": _share(means["attainment_feasible"]["both"]),
        "±": "" if width is None else f"{100 * min(1.0, width):.1f}",
        **{key: "-" if ttft[key] is None else f"{ttft[key]:.1f}s" for key in ("p95", "p99")},
        "pods": f"{means['average_replicas']:.2f}",
        "GPU-h": f"{means['gpu_hours']:.2f}",
        "node-h": "" if means["node_hours"] is None else f"{means['node_hours']:.2f}",
        "moves": f"{means['scale_events']:.1f}",
        "wasted": f"{means['wasted_starts']:.1f}",
    }


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


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
