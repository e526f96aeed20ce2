"""The results of a backtest as one HTML file that needs nothing else: tables, the Pareto plot, each run over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import cast

from scaler.backtest.plant import MOMENT_S, Moment
from scaler.backtest.report.svg import LEFT, RIGHT, WIDTH, Dot, Mark, Series, panel, plane
from scaler.backtest.run import Result
from scaler.backtest.scores import Numbers
from scaler.backtest.table import REFERENCE, front

_MOST_MOMENTS = 1200
"""More than this no screen can show: longer runs are drawn more coarsely."""
_OPEN = 1
"""Stories that are open at first."""


def html(results: Sequence[Result]) -> str:
    """Return the page."""
    scenes = [list(group) for _, group in groupby(results, key=lambda result: id(result.scene))]
    links = "".join(
        f'<a href="#scene-{i}">{escape(scene[0].scene.title)}</a>' for i, scene in enumerate(scenes, start=1)
    )
    links = f"<nav>{links}</nav>" if len(scenes) > 1 else ""
    body = "".join(_scene(i, scene) for i, scene in enumerate(scenes, start=1))
    text = files(__name__)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Backtest</title>'
        f"<style>{text.joinpath('page.css').read_text(encoding='utf-8')}</style></head><body>"
        "<h1>Backtest</h1><p>The same traffic on the same simulated pods, moved by one policy after the other.</p>"
        f"{links}{body}<script>{text.joinpath('page.js').read_text(encoding='utf-8')}</script></body></html>"
    )


def _scene(number: int, results: Sequence[Result]) -> str:
    scene, best = results[0].scene, front(results)
    plant, seeds = scene.plant, len(results[0].runs)
    about = (
        f"{plant.minimum} to {plant.maximum} replicas; engine {plant.profile.name}; promised are a first token within "
        f"{plant.ttft_slo_s:g} s and {plant.tpot_slo_s * 1000:g} ms a token after it; "
        + (f"means over {seeds} seeds, with half the 95 % interval." if seeds > 1 else "one seed.")
    )
    dots = [
        Dot(
            result.policy,
            result.means["gpu_hours"],
            result.means["attainment"]["both"] or 0.0,
            result.half_widths["gpu_hours"],
            result.half_widths["attainment"]["both"],
            _style(result.policy),
            on_front,
            reference=result.policy == REFERENCE,
        )
        for result, on_front in zip(results, best, strict=True)
    ]
    stories = "".join(_story(result, opened=i < _OPEN) for i, result in enumerate(results))
    title = "Within both objectives, against GPU-hours"
    legend = "Up and to the left is better; the scale widens towards 100 %. The dashed line joins those that nobody "
    legend += "beats at both; grey are fixed counts; the ring knows the future and is there to compare with."
    return (
        f'<section id="scene-{number}"><h2>{escape(scene.title)}</h2><p>{escape(about)}</p>'
        f"{_table(results, best)}{plane(dots, 'GPU-hours', title)}<p>{legend}</p>"
        f"<p>Each policy over time, with the first seed. Point at a plot to read it.</p>{stories}</section>"
    )


def _style(policy: str) -> str:
    """Colour by kind: fixed counts and the clairvoyant are bounds, not competitors."""
    if policy.startswith("static"):
        return "grey"
    return "violet" if policy == REFERENCE else "blue"


@dataclass(frozen=True, slots=True)
class _Column:
    """One number of the table."""

    head: str
    path: tuple[str, ...]
    """Where it is among a result's numbers."""
    digits: int
    factor: float = 1.0
    width: bool = False
    """Whether its interval is told."""


_COLUMNS = (
    _Column("both, %", ("attainment", "both"), 1, 100, width=True),
    _Column("of feasible, %", ("attainment_feasible", "both"), 1, 100),
    _Column("TTFT, %", ("attainment", "ttft"), 1, 100),
    _Column("TPOT, %", ("attainment", "tpot"), 1, 100),
    *(_Column(f"{name}, s", ("ttft", name), 2) for name in ("p50", "p95", "p99")),
    _Column("replicas", ("average_replicas",), 2, width=True),
    _Column("GPU-hours", ("gpu_hours",), 2, width=True),
    _Column("changes", ("scale_events",), 1),
    _Column("wasted", ("wasted_starts",), 1),
)


def _table(results: Sequence[Result], best: Sequence[bool]) -> str:
    infeasible = any(result.means["requests"]["feasible"] < result.means["requests"]["all"] for result in results)
    columns = [column for column in _COLUMNS if infeasible or column.path[0] != "attainment_feasible"]
    head = "".join(f"<th>{name}</th>" for name in ("policy", *(column.head for column in columns)))
    rows = "".join(
        f'<tr class="{_row_style(result, on_front)}"><td>{_breakable(result.policy)}</td>'
        f"{''.join(f'<td>{_cell(column, result)}</td>' for column in columns)}</tr>"
        for result, on_front in zip(results, best, strict=True)
    )
    note = (
        "both: within the objectives of TTFT and of TPOT, of all requests; "
        + ("of feasible: of those that would be alone on an idle replica; " if infeasible else "")
        + "p50 to p99: time to first token; wasted: pods that went before they finished a request. "
        "Bold: nobody here attains more for less."
    )
    return (
        f'<div class="scroll"><table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"<p>{note}</p>"
    )


def _row_style(result: Result, on_front: bool) -> str:
    return "reference" if result.policy == REFERENCE else "front" if on_front else ""


def _breakable(policy: str) -> str:
    """Let a long name go on in the next line after a comma."""
    return escape(policy).replace(",", ",<wbr>")


def _cell(column: _Column, result: Result) -> str:
    value, width = _at(result.means, column.path), _at(result.half_widths, column.path)
    if value is None:
        return "–"
    text = f"{value * column.factor:.{column.digits}f}"
    if not column.width or width is None:
        return text
    return f'{text} <span class="width">±{width * column.factor:.{column.digits}f}</span>'


def _at(numbers: Numbers, path: Sequence[str]) -> float | None:
    for key in path:
        numbers = numbers[key]
    return cast("float | None", numbers)


def _story(result: Result, opened: bool) -> str:
    story, plant = result.story, result.scene.plant
    duration, moments = result.scene.trace.duration_s, _coarser(story.moments)
    every = MOMENT_S * max(1, -(-len(story.moments) // _MOST_MOMENTS))
    marks = [
        Mark(
            change.time,
            f"{change.before} → {change.after} by {change.by}: {change.reason or 'no reason given'}",
            "green" if change.after > change.before else "red",
        )
        for change in story.changes
    ]

    def over_time(label: str, style: str, kind: str, *fields: str) -> Series:
        points = [(moment.time, float(sum(getattr(moment, field) for field in fields))) for moment in moments]
        return Series(label, style, points, "area" if kind == "area" else "step" if kind == "step" else "line")

    load = [(moment.time, moment.arrivals / every) for moment in moments]
    most = max([plant.maximum * 0.4, *(m.requested for m in moments), *(_held(m) for m in moments)]) * 1.1
    panels = [
        panel("Arrivals, requests/s", [Series("arriving", "blue", load)], duration, height=100),
        panel(
            "Requests in the system",
            [over_time("running", "green", "line", "running"), over_time("waiting", "red", "line", "waiting")],
            duration,
        ),
        panel(
            "Replicas",
            [
                over_time("pending", "grey", "area", "ready", "starting", "terminating", "pending"),
                over_time("terminating", "red", "area", "ready", "starting", "terminating"),
                over_time("starting", "amber", "area", "ready", "starting"),
                over_time("ready", "green", "area", "ready"),
                over_time("wanted", "ink", "step", "requested"),
            ],
            duration,
            height=150,
            top=most,
            marks=marks,
        ),
        panel(
            "Within both objectives, by time of arrival",
            [Series("attained", "violet", story.attainment)],
            duration,
            height=100,
            top=1.04,
            percent=True,
        ),
        panel("Cost, GPU-hours", [Series("so far", "amber", story.gpu_hours)], duration, height=90),
    ]
    attained = result.runs[0]["attainment"]["both"]
    said = "no request" if attained is None else f"{attained:.1%} at {result.runs[0]['gpu_hours']:.2f} GPU-hours"
    return (
        f"<details{' open' if opened else ''}><summary>{escape(result.policy)} <span>{said}, "
        f'{len(story.changes)} changes</span></summary><div class="story">'
        f'<div class="readout">Green marks are moves up, red ones moves down.</div>{"".join(panels)}'
        f"{_changes(result)}{_data(moments, every, duration)}</div></details>"
    )


def _held(moment: Moment) -> int:
    return moment.ready + moment.starting + moment.terminating + moment.pending


def _coarser(moments: Sequence[Moment]) -> Sequence[Moment]:
    """Return at most `_MOST_MOMENTS`: each stands for several, with all their arrivals and their longest queue."""
    stride = -(-len(moments) // _MOST_MOMENTS)
    if stride <= 1:
        return moments
    coarse = []
    for i in range(0, len(moments), stride):
        some = moments[i : i + stride]
        last = some[-1]
        coarse.append(
            Moment(
                time=some[0].time,
                arrivals=sum(moment.arrivals for moment in some),
                waiting=max(moment.waiting for moment in some),
                running=last.running,
                requested=last.requested,
                pending=last.pending,
                starting=last.starting,
                ready=last.ready,
                terminating=last.terminating,
            )
        )
    return coarse


def _changes(result: Result) -> str:
    if not result.story.changes:
        return "<p>The count never changed.</p>"
    rows = "".join(
        f"<tr><td>{int(change.time) // 60}:{int(change.time) % 60:02d}</td><td>{change.before} → {change.after}</td>"
        f"<td>{escape(change.by)}</td><td>{escape(change.reason or '–')}</td></tr>"
        for change in result.story.changes
    )
    return (
        '<div class="changes"><table><thead><tr><th>time</th><th style="text-align:left">replicas</th>'
        '<th style="text-align:left">by</th><th style="text-align:left">reason</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _data(moments: Sequence[Moment], every: float, duration_s: float) -> str:
    """Return what the crosshair reads."""
    data = {
        "width": WIDTH,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "duration": duration_s,
        "names": ["arriving/s", "running", "waiting", "wanted", "ready", "starting", "terminating", "pending"],
        "rows": [
            (
                moment.time,
                round(moment.arrivals / every, 1),
                moment.running,
                moment.waiting,
                moment.requested,
                moment.ready,
                moment.starting,
                moment.terminating,
                moment.pending,
            )
            for moment in moments
        ],
    }
    return f'<script type="application/json">{json.dumps(data, separators=(",", ":"))}</script>'
