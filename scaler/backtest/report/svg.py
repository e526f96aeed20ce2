"""Small plots as SVG text: panels over time, and points in a plane. Colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    def anchor(tick: float) -> str:
        return "end" if x(tick) > WIDTH - RIGHT - 20 else "middle"  # else the last one would be cut

    return "".join(
        f'<text x="{x(tick):.1f}" y="{height - 4}" text-anchor="{anchor(tick)}">{clock(tick)}</text>'
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
    reference: bool = False
    """Drawn as a ring: it is there to compare with."""


def plane(dots: Sequence[Dot], x_title: str, y_title: str, *, height: int = 440) -> str:
    """Return a plot of points with the line of those on the front; y is a share, and higher is better.

    The scale of y is that of the square root of what is missing to 1: where good policies differ there is room.
    """
    least, most = min(dot.x for dot in dots), max(dot.x for dot in dots)
    room = max(0.08 * (most - least), 0.02 * most, 1e-9)
    x = Scale(max(0.0, least - room), most + room, LEFT, WIDTH - RIGHT)
    bottom = max(0.0, 1 - (1 - min(dot.y for dot in dots)) * 1.15 - 0.002)
    root = Scale(-math.sqrt(1 - bottom), 0.0, height - BOTTOM - 16, TOP + 16)

    def y(share: float) -> float:
        return root(-math.sqrt(1 - min(1.0, max(bottom, share))))

    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share * 100:g}%</text>'
        for share in _apart(_SHARES, y)
        if share >= bottom
    ]
    parts += [
        f'<text x="{x(tick):.1f}" y="{height - 20}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks(x.low, x.high, 8)
    ]
    parts.append(f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 4}" text-anchor="end">{escape(x_title)}</text>')
    front = sorted((dot for dot in dots if dot.on_front), key=lambda dot: dot.x)
    if front:
        path = f"M{x(front[0].x):.1f},{y(front[0].y):.1f}"
        path += "".join(f"H{x(dot.x):.1f}V{y(dot.y):.1f}" for dot in front[1:])
        parts.append(f'<path class="front" d="{path}"/>')
    parts += [_whiskers(dot, x, y) for dot in dots]
    places = place([(x(dot.x), y(dot.y)) for dot in dots], [dot.label for dot in dots], height - BOTTOM - 10)
    for dot, label in zip(dots, places, strict=True):
        px, py = x(dot.x), y(dot.y)
        words = f"{dot.label}: {dot.y:.1%} at {dot.x:.2f}"
        leader = ""
        if label.far:
            leader = f'<line class="leader" x1="{px:.1f}" y1="{py:.1f}" x2="{label.x:.1f}" y2="{label.y - 4:.1f}"/>'
        weight = ' class="best"' if dot.on_front else ""
        parts.append(
            f'<g class="dot {dot.style}{" ring" if dot.reference else ""}">{leader}'
            f'<text{weight} x="{label.x:.1f}" y="{label.y:.1f}" text-anchor="{label.anchor}">{escape(dot.label)}</text>'
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{5 if dot.on_front or dot.reference else 4}"/>'
            f"<title>{escape(words)}</title></g>"
        )
    return (
        f'<figure class="panel"><figcaption><b>{escape(y_title)}</b></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(y_title)}">{"".join(parts)}</svg></figure>'
    )


_SHARES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.999, 0.98)
"""Where the axis of shares may have a line, the most wanted first."""


def _apart(shares: Sequence[float], y: Callable[[float], float]) -> list[float]:
    """Return the shares whose lines do not come too near to a more wanted one."""
    kept: list[float] = []
    for share in shares:
        if all(abs(y(share) - y(other)) >= _LINE for other in kept):
            kept.append(share)
    return kept


def _whiskers(dot: Dot, x: Scale, y: Callable[[float], float]) -> str:
    lines = ""
    if dot.dx is not None:
        left, right = x(max(x.low, dot.x - dot.dx)), x(min(x.high, dot.x + dot.dx))
        lines += f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y(dot.y):.1f}" y2="{y(dot.y):.1f}"/>'
    if dot.dy is not None:
        up, down = y(dot.y + dot.dy), y(dot.y - dot.dy)
        lines += f'<line x1="{x(dot.x):.1f}" x2="{x(dot.x):.1f}" y1="{down:.1f}" y2="{up:.1f}"/>'
    return f'<g class="whiskers {dot.style}">{lines}</g>'


@dataclass(frozen=True, slots=True)
class Label:
    """Where the name of a dot stands."""

    x: float
    y: float
    """Of its base line."""
    anchor: Literal["start", "end"]
    far: bool
    """So far from its dot that a line should lead there."""


_LINE = 14.0
_LETTER = 7.2
_GAP = 9.0
_FAR = 10.0

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def place(dots: Sequence[tuple[float, float]], texts: Sequence[str], bottom: float) -> list[Label]:
    """Return where each dot's name stands: beside it where there is room, else as near as it can be without overlap.

    Names cover neither each other nor a dot, and stay between the top of the plot and `bottom`, as long as there is a
    place for them at all.
    """
    taken: list[Box] = [(px - 6, py - 6, px + 6, py + 6) for px, py in dots]
    labels: dict[int, Label] = {}
    for i in sorted(range(len(dots)), key=lambda i: dots[i][1]):
        px, py = dots[i]
        candidates = [
            _label(px, py, side, shift * _LINE / 2, texts[i], stretch)
            for stretch in (0.0, 12.0, 30.0)
            for shift in sorted(range(-24, 25), key=lambda step: (abs(step), -step))
            for side in (1, -1)
        ]
        inside = [
            (label, box)
            for label, box in candidates
            if box[0] >= LEFT and box[2] <= WIDTH and box[1] >= 0 and box[3] <= bottom
        ]
        free = [(label, box) for label, box in inside if not any(_overlap(box, other) for other in taken)]
        # Near first: a step aside costs as much as a step up.
        label, box = min(
            free or inside or candidates,
            key=lambda each: abs(each[0].y - 4 - py) + abs(each[0].x - px) + 2 * (each[0].anchor == "end"),
        )
        labels[i] = label
        taken.append(box)
    return [labels[i] for i in range(len(dots))]


def _label(px: float, py: float, side: int, dy: float, text: str, stretch: float) -> tuple[Label, Box]:
    x, y, width = px + side * (_GAP + stretch), py + dy + 4, _LETTER * len(text)
    left = x if side > 0 else x - width
    far = abs(dy) > _FAR or stretch > _FAR
    return Label(x, y, "start" if side > 0 else "end", far), (left, y - 11, left + width, y + 3)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
