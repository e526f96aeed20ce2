"""Small plots as SVG text: panels over time, and points in a plane. Colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

WIDTH = 960
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 8, 20

Points = Sequence[tuple[float, float | None]]
"""(x, y); a y of None is a gap."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a panel, or one area."""

    label: str
    style: str
    """The class that gives it its colour."""
    points: Points
    kind: Literal["line", "step", "area"] = "line"
    """An `area` is a step whose ground is filled."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical mark with words that show when one points at it."""

    x: float
    text: str
    style: str


def ticks(low: float, high: float, about: int) -> list[float]:
    """Return round numbers between two numbers, about so many: steps of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels."""

    low: float
    high: float
    at_low: float
    at_high: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        span = (self.high - self.low) or 1.0
        return self.at_low + (value - self.low) / span * (self.at_high - self.at_low)


def minutes(low: float, high: float, about: int = 10) -> list[float]:
    """Return round times in seconds: whole minutes, quarters, hours or days."""
    rough = (high - low) / max(1, about)
    steps = (5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)
    step = next((step for step in steps if step >= rough), steps[-1])
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def clock(seconds: float) -> str:
    """Return a time of a run, such as `45 s`, `12 min` or `30 h`."""
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{seconds / 60:g} min" if seconds < 6 * 3600 else f"{seconds / 3600:g} h"


def panel(
    title: str,
    series: Sequence[Series],
    duration_s: float,
    *,
    height: int = 110,
    top: float | None = None,
    marks: Sequence[Mark] = (),
    percent: bool = False,
) -> str:
    """Return one plot over time with its axes and legend. `top` is the upper end of its axis; None: as the data need.

    Its root carries the data of the crosshair: where the axis of time begins and ends.
    """
    highest = max((y for each in series for _, y in each.points if y is not None), default=0.0)
    y = Scale(0.0, top or highest * 1.08 or 1.0, height - BOTTOM, TOP)
    x = Scale(0.0, duration_s, LEFT, WIDTH - RIGHT)
    parts = [_grid_y(y, percent), _grid_x(x, height, duration_s)]
    parts += [_drawn(each, x, y) for each in series]
    parts += [
        f'<g class="mark {mark.style}"><line x1="{x(mark.x):.1f}" x2="{x(mark.x):.1f}" y1="{TOP}" '
        f'y2="{height - BOTTOM}"/><title>{escape(mark.text)}</title></g>'
        for mark in marks
    ]
    parts.append(f'<line class="crosshair" y1="{TOP}" y2="{height - BOTTOM}"/>')
    legend = "".join(f'<span class="key {each.style}">{escape(each.label)}</span>' for each in series)
    return (
        f'<figure class="panel"><figcaption><b>{escape(title)}</b> {legend}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg></figure>'
    )


def _grid_y(y: Scale, percent: bool) -> str:
    lines = []
    for tick in ticks(y.low, y.high, 4):
        text = f"{tick:.0%}" if percent else f"{tick:g}"
        lines.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{text}</text>'
        )
    return "".join(lines)


def _grid_x(x: Scale, height: int, duration_s: float) -> str:
    return "".join(
        f'<text x="{x(tick):.1f}" y="{height - 4}" text-anchor="middle">{clock(tick)}</text>'
        for tick in minutes(0.0, duration_s)
    )


def _drawn(series: Series, x: Scale, y: Scale) -> str:
    """Return the path or paths of a series: a gap in it is a gap in the plot."""
    runs: list[list[tuple[float, float]]] = [[]]
    for time, value in series.points:
        if value is None:
            runs.append([])
        else:
            runs[-1].append((x(time), y(value)))
    paths = []
    for run in runs:
        if not run:
            continue
        path = f"M{run[0][0]:.1f},{run[0][1]:.1f}"
        if series.kind == "line":
            path += "".join(f"L{px:.1f},{py:.1f}" for px, py in run[1:])
        else:
            path += "".join(f"H{px:.1f}V{py:.1f}" for px, py in run[1:])
        if series.kind == "area":
            path += f"V{y(0.0):.1f}H{run[0][0]:.1f}Z"
        paths.append(f'<path class="{series.kind} {series.style}" d="{path}"/>')
    return "".join(paths)


@dataclass(frozen=True, slots=True)
class Dot:
    """A point in a plane, with the half widths of its intervals."""

    label: str
    x: float
    y: float
    dx: float | None
    dy: float | None
    style: str
    on_front: bool


def plane(dots: Sequence[Dot], x_title: str, y_title: str, *, height: int = 380) -> str:
    """Return a plot of points with the line of those on the front; y is a share, and higher is better."""
    low = min(dot.y for dot in dots)
    bottom = max(0.0, low - 0.05 * (1 - low) - 0.004)
    most = max(dot.x for dot in dots)
    x = Scale(0.0, most * 1.12 or 1.0, LEFT, WIDTH - RIGHT)
    y = Scale(bottom, 1.0 + (1.0 - bottom) * 0.03, height - BOTTOM - 16, TOP + 8)
    parts = []
    for tick in ticks(bottom, 1.0, 6):
        digits = 0 if 1.0 - bottom > 0.06 else 1
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.{digits}%}</text>'
        )
    parts += [
        f'<text x="{x(tick):.1f}" y="{height - 20}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks(0.0, x.high, 8)
    ]
    parts.append(f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 4}" text-anchor="end">{escape(x_title)}</text>')
    front = sorted((dot for dot in dots if dot.on_front), key=lambda dot: dot.x)
    if front:
        path = f"M{x(front[0].x):.1f},{y(front[0].y):.1f}"
        path += "".join(f"H{x(dot.x):.1f}V{y(dot.y):.1f}" for dot in front[1:])
        parts.append(f'<path class="front" d="{path}"/>')
    heights = _label_heights([(x(dot.x), y(dot.y)) for dot in dots], [len(dot.label) for dot in dots])
    for dot, label_y in zip(dots, heights, strict=True):
        px, py = x(dot.x), y(dot.y)
        whiskers = ""
        if dot.dx is not None:
            left, end = x(max(0.0, dot.x - dot.dx)), x(min(x.high, dot.x + dot.dx))
            whiskers += f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{py:.1f}" y2="{py:.1f}"/>'
        if dot.dy is not None:
            up, down = y(min(1.0, dot.y + dot.dy)), y(max(bottom, dot.y - dot.dy))
            whiskers += f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{down:.1f}" y2="{up:.1f}"/>'
        words = f"{dot.label}: {dot.y:.1%} at {dot.x:.2f}"
        right = px > WIDTH * 0.8
        parts.append(
            f'<g class="dot {dot.style}">{whiskers}<circle cx="{px:.1f}" cy="{py:.1f}" r="{5 if dot.on_front else 4}"/>'
            f'<text x="{px + (-8 if right else 8):.1f}" y="{label_y + 4:.1f}" '
            f'text-anchor="{"end" if right else "start"}">{escape(dot.label)}</text>'
            f"<title>{escape(words)}</title></g>"
        )
    return (
        f'<figure class="panel"><figcaption><b>{escape(y_title)}</b></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(y_title)}">{"".join(parts)}</svg></figure>'
    )


_LINE = 13.0
_LETTER = 6.6


def _label_heights(places: Sequence[tuple[float, float]], lengths: Sequence[int]) -> list[float]:
    """Return where labels stand, moved down so that none covers another."""
    heights = [py for _, py in places]
    taken: list[tuple[float, float, float]] = []
    for i in sorted(range(len(places)), key=lambda i: places[i][1]):
        px, py = places[i]
        begin, end = (px - _LETTER * lengths[i], px) if px > WIDTH * 0.8 else (px, px + _LETTER * lengths[i])
        for left, right, height in sorted(taken, key=lambda each: each[2]):
            if begin < right and left < end and abs(py - height) < _LINE:
                py = height + _LINE
        heights[i] = py
        taken.append((begin, end, py))
    return heights
