"""What was played as tables: the same ones for a terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable

from benchmarks.policies import verdict
from benchmarks.policies.contestants import ADAPTIVE, label
from benchmarks.policies.grid import Place, Standing, Standings
from benchmarks.policies.scenes import Scene, swing
from scaler.backtest.scores import Numbers


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text; the first column is words, the others are numbers unless `words` says how many are words."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1

    def markdown(self) -> str:
        """Return it for a page, without its title."""
        marks = ["---" if i < self.words else "--:" for i in range(len(self.columns))]
        lines = [self.columns, marks, *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def rich(self) -> RichTable:
        """Return it for a terminal."""
        made = RichTable(title=self.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for i, column in enumerate(self.columns):
            made.add_column(column, justify="left" if i < self.words else "right", overflow="fold")
        for row in self.rows:
            made.add_row(*row)
        return made


@dataclass(frozen=True, slots=True)
class Report:
    """All tables of a grid."""

    aims: Table
    misses: Table
    fronts: Table
    overviews: Sequence[Table]
    details: Mapping[Scene, Sequence[Table]]
    """One for each start-up."""

    @property
    def all(self) -> list[Table]:
        """Return them with the most important last, as they are read in a terminal."""
        return [*chain.from_iterable(self.details.values()), *self.overviews, self.fronts, self.misses, self.aims]


def report(standings: Standings) -> Report:
    """Make the tables of what was played."""
    places = [place for place, all_there in standings.items() if len(all_there) > 1]
    scenes = list(dict.fromkeys(place.scene for place in places))
    return Report(
        aims(standings),
        misses(standings),
        front(standings),
        [overview(scene, standings) for scene in scenes],
        {scene: [full(place, standings[place]) for place in places if place.scene == scene] for scene in scenes},
    )


def aims(standings: Standings) -> Table:
    """Return for each aim in how many places it was held."""
    found = verdict.aims(standings)
    rows = []
    for text in dict.fromkeys(aim.text for aim in found):
        same = [aim for aim in found if aim.text == text]
        rows.append((text, str(len(same)), str(sum(aim.held for aim in same))))
    return Table("Aims of the adaptive policy", ("aim", "places", "held in"), rows)


def misses(standings: Standings) -> Table:
    """Return every aim that was missed: by how much, and what is known of the reason."""
    rows = [
        (
            aim.text,
            _marked(aim.place.scene),
            f"{aim.place.start_up_s:g} s",
            aim.measured,
            aim.missed_by,
            verdict.reason(aim.place, standings[aim.place]),
        )
        for aim in verdict.aims(standings)
        if not aim.held
    ]
    columns = ("aim", "trace", "start-up", "measured", "missed by", "why")
    return Table(f"Where it misses them. {_MARK}", columns, rows, words=6)


def front(standings: Standings) -> Table:
    """Return who is on the front of attainment and GPU-hours, place by place."""
    rows = []
    for place, all_there in standings.items():
        if len(all_there) > 1:
            best = sorted(verdict.on_front(all_there), key=lambda each: each.gpu_hours)
            ours = any(each.contestant == ADAPTIVE for each in best)
            names = ", ".join(f"{label(each.contestant)} {_at(each)}" for each in best)
            rows.append((_marked(place.scene), f"{place.start_up_s:g} s", "yes" if ours else "no", names))
    columns = ("trace", "start-up", "adaptive on it", "the front, from the cheapest on")
    return Table(f"Pareto fronts of attainment (%) and cost (@ average replicas). {_MARK}", columns, rows, words=4)


def overview(scene: Scene, standings: Standings) -> Table:
    """Return attainment and average replicas of all in a scene, start-up by start-up."""
    places = [place for place in standings if place.scene == scene and len(standings[place]) > 1]
    names = [label(each.contestant) for each in standings[places[0]]]
    cells = {(label(each.contestant), place): _at(each) for place in places for each in standings[place]}
    rows = [(name, *(cells.get((name, place), "–") for place in places)) for name in names]
    return Table(
        f"{_marked(scene)}: {scene.what}; the load varies {swing(scene):.1f} times",
        ("attainment of both objectives, % @ average replicas", *(f"{place.start_up_s:g} s" for place in places)),
        rows,
    )


_MARK = "* our policy was not worked on with this trace"


def _marked(scene: Scene) -> str:
    return scene.name if scene.seen else f"{scene.name}*"


_COLUMNS = (
    "policy",
    "both met",
    "of the feasible",
    "TTFT met",
    "TPOT met",
    "TTFT p50",
    "p95",
    "p99",
    "replicas",
    "GPU-hours",
    "scale events",
    "wasted starts",
    "seeds",
)


def full(place: Place, standings: Sequence[Standing]) -> Table:
    """Return all numbers of a place. ● marks the front."""
    best = {each.contestant for each in verdict.on_front(standings)}
    rows = [(f"{'● ' if each.contestant in best else ''}{label(each.contestant)}", *_cells(each)) for each in standings]
    return Table(f"{place.scene.name}, start-up {place.start_up_s:g} s", _COLUMNS, rows)


def _at(standing: Standing) -> str:
    return f"{100 * standing.attained:.1f} @ {standing.means['average_replicas']:.2f}"


def _cells(standing: Standing) -> Iterable[str]:
    means, widths = standing.means, standing.half_widths
    attained, spread = means["attainment"], widths["attainment"]
    ttft, ttft_width = means["ttft"], widths["ttft"]
    return (
        _share(attained["both"], spread["both"]),
        _share(means["attainment_feasible"]["both"], None),
        _share(attained["ttft"], spread["ttft"]),
        _share(attained["tpot"], spread["tpot"]),
        *(_number(ttft[each], ttft_width[each], " s") for each in ("p50", "p95", "p99")),
        *_plain(means, widths),
        str(len(standing.runs)),
    )


def _plain(means: Numbers, widths: Numbers) -> Iterable[str]:
    keys = ("average_replicas", "gpu_hours", "scale_events", "wasted_starts")
    return (_number(means[key], widths[key]) for key in keys)


def _share(share: float | None, width: float | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share:.1f} %" if width is None else f"{100 * share:.1f} ± {100 * width:.1f} %"


def _number(value: float | None, width: float | None, unit: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:.2f}{unit}" if width is None else f"{value:.2f} ± {width:.2f}{unit}"
