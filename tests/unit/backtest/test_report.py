"""Report and table can be read: names do not cover each other, lines fit, and the oracle competes with nobody."""

from __future__ import annotations

from functools import lru_cache
from io import StringIO
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from inference.simulated import Request
from scaler.backtest import report
from scaler.backtest.deployment import PodLuck
from scaler.backtest.entrants import entrant
from scaler.backtest.plant import Plant
from scaler.backtest.report.svg import Label, place
from scaler.backtest.run import Result, Scene, play
from scaler.backtest.table import front, table
from scaler.backtest.traces import Trace

POLICIES = ("adaptive,headroom=10%,burstThreshold=2", "oracle", "llm-d-queue-guard", "static-2", "static-3")


def mixed(seed: int) -> list[Request]:
    """Short requests, and now and then one that nobody could serve in time."""
    return [Request(i / 2 + seed / 100, 60_000 if i % 40 == 7 else 900, 60) for i in range(240)]


@lru_cache
def results(seeds: int = 2) -> list[Result]:
    scene = Scene(Trace("short", 120.0, mixed), Plant(1, 3, luck=PodLuck(20.0)))
    return play([scene], [entrant(name) for name in POLICIES], range(seeds))


def printed(width: int, seeds: int) -> list[str]:
    out = StringIO()
    Console(file=out, width=width).print(table(results(seeds)))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_table_shows_all_its_numbers_in_80_columns(seeds: int) -> None:
    lines = printed(80, seeds)
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    head = next(line for line in lines if "GPU-h" in line)
    assert head.split() == [
        "policy",
        "met",
        "feasible",
        *["±"] * (seeds > 1),
        "p95",
        "p99",
        "pods",
        "GPU-h",
        "moves",
        "wasted",
    ]
    assert "headroom=10%" in "".join(lines)  # in a line of its own


def test_the_oracle_is_on_no_front_and_pushes_nobody_from_it() -> None:
    every = results()
    best = dict(zip((result.policy for result in every), front(every), strict=True))
    assert not best["oracle"]
    alone = [result for result in every if result.policy != "oracle"]
    assert [best[result.policy] for result in alone] == front(alone)
    assert any(line.startswith(" ◇") and "oracle" in line for line in printed(80, 2))


def test_the_page_needs_nothing_else_and_shows_everyone() -> None:
    page = report.html(results())
    assert "http" not in page.replace("http://www.w3.org", "")
    assert page.count("<details") == len(POLICIES)
    assert "of feasible" in page
    assert 'class="dot violet ring"' in page


names = st.text(st.sampled_from("abcdefgh-"), min_size=3, max_size=20)


@given(st.lists(st.tuples(st.floats(60, 940), st.floats(20, 380), names), min_size=1, max_size=16))
def test_names_of_dots_stay_inside_and_do_not_cover_each_other(dots: list[tuple[float, float, str]]) -> None:
    texts = [text for _, _, text in dots]
    labels = place([(x, y) for x, y, _ in dots], texts, 420.0)
    boxes = [box(label, text) for label, text in zip(labels, texts, strict=True)]
    assert all(left >= 0 and right <= 960 and top >= 0 and bottom <= 420 for left, top, right, bottom in boxes)
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def box(label: Label, text: str) -> tuple[float, float, float, float]:
    """The ground that a name of letters 6.5 wide covers."""
    width = 6.5 * len(text)
    left = label.x if label.anchor == "start" else label.x - width
    return left, label.y - 10, left + width, label.y + 3
