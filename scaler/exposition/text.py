"""Prometheus text and OpenMetrics: only the wanted names, straight out of the page's bytes.

A page is read in three steps, each of which does as little as it can:

1. one compiled pattern finds the lines that begin with a wanted name; no other line is looked at;
2. the text of such a line up to its last space is a series. What it stands for is worked out once and remembered:
   a pod prints the same series at every scrape, and pods that serve the same model print the same ones;
3. the text behind that space is the number.

A line that is written in any other way (a timestamp, an exemplar, odd spaces, a quoted name) is no remembered
series and takes the careful path. A line that nobody can read is skipped and counted under its name. Memory and
time grow with the page at most linearly: patterns are possessive, big pages are cut into windows, what is
remembered has an upper limit, and a page with absurdly many wanted lines is refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from scaler.exposition.sample import PageError

CellT = TypeVar("CellT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
Labels = dict[str, str]

MAX_LINES = 50_000
"""More wanted lines than this on one page are no engine's: 64 engines with all their histograms have 8,000."""
MAX_LABELS = 200
MAX_LINE_BYTES = 1 << 16
"""A longer wanted line counts as bad: the labels of a load metric are short, and a hostile one must not cost much."""
_WINDOW = 1 << 20
_UNDERSCORE = ord("_")
_REMEMBERED_SERIES, _REMEMBERED_LENGTH = 1 << 15, 1 << 10


class PageReader(Generic[CellT, KeyT]):
    """Reads the samples of some names, each into the cell and under the key that `place` says.

    `names` are sample names (`…_bucket` and so on). A colon in one stands for an underscore too, because an
    OpenMetrics exposition may escape it. `place(name, labels)` gets the name as it is in `names`; it is called once
    for each series text, so it must be pure. It returns None for a series that is not wanted after all, and raises
    ValueError for one that makes no sense (its line is then a bad line).
    """

    def __init__(self, names: Iterable[str], place: Callable[[str, Labels], tuple[CellT, KeyT] | None]) -> None:
        self._names = {_canonical(name): name for name in names}
        self._place = place
        self._known: dict[bytes, tuple[CellT, KeyT] | None] = {}
        self._cells: dict[CellT, CellT] = {}
        wanted = _one_of(self._names.values())
        self._wanted_lines = re.compile(rb"\n[ \t]*+((?:%b(?![a-zA-Z0-9_:])|\{)[^\n]*+)" % wanted)

    def read(self, page: bytes) -> Page[CellT, KeyT]:
        """Read all wanted samples; of a series that appears twice the last one counts. Raises PageError."""
        cells: defaultdict[CellT, dict[KeyT, float]] = defaultdict(dict)
        bad: dict[str, BadLines] = {}
        known = self._known
        lines_seen = 0
        last_cell, samples = None, {}
        last_number, value = None, 0.0
        for window in _windows(page):
            lines = self._wanted_lines.findall(window)
            lines_seen += len(lines)
            if lines_seen > MAX_LINES:
                raise PageError(f"more than {MAX_LINES:,} wanted lines: no engine prints such a page")
            for line in lines:
                series, _, number = line.rpartition(b" ")
                try:
                    spot = known[series]
                    if number != last_number:  # the outer buckets of a histogram are alike
                        value = float(number) if _UNDERSCORE not in number else _number(number)
                        last_number = number
                except (KeyError, ValueError):
                    last_number = None
                    try:
                        spot, value = self._read_carefully(line, series)
                    except ValueError:
                        self._count_bad_line(line, bad)
                        continue
                if spot is not None:
                    cell, key = spot
                    if cell is not last_cell:  # the samples of one cell stand together
                        last_cell, samples = cell, cells[cell]
                    samples[key] = value
        return Page(page, cells, bad)

    def _read_carefully(self, line: bytes, series: bytes) -> tuple[tuple[CellT, KeyT] | None, float]:
        """Read a line by the book. Raises ValueError."""
        if len(line) > MAX_LINE_BYTES:
            raise ValueError("too long")
        name, labels, end = _parse_series(line)
        value = _parse_value(line[end:])
        wanted = self._names.get(_canonical(name))
        spot = None if wanted is None else self._place(wanted, labels)
        if len(series) == end <= _REMEMBERED_LENGTH:
            if len(self._known) >= _REMEMBERED_SERIES:
                self._known.clear()
                self._cells.clear()
            if spot is not None:
                spot = self._cells.setdefault(spot[0], spot[0]), spot[1]
            self._known[series] = spot
        return spot, value

    def _count_bad_line(self, line: bytes, bad: dict[str, BadLines]) -> None:
        named = _NAME.match(line) or _QUOTED_NAME.match(line)
        name = self._names.get(_canonical(_text(named[named.lastindex or 0]))) if named else None
        if name is not None:
            before = bad.get(name)
            bad[name] = BadLines(before.count + 1, before.first) if before else BadLines(1, _text(line[:200]))


@dataclass(frozen=True, slots=True)
class BadLines:
    """Lines of one wanted name that could not be read."""

    count: int
    first: str
    """The beginning of the first one."""


class Page(Generic[CellT, KeyT]):
    """The wanted samples of a page. A name without samples is idle if the page declares it, else it is absent."""

    def __init__(
        self, page: bytes, cells: Mapping[CellT, dict[KeyT, float]], bad: Mapping[str, BadLines] | None = None
    ) -> None:
        self._page = page
        self._declared: frozenset[str] | None = None
        self.cells = cells
        """Cell → key → value."""
        self.bad: Mapping[str, BadLines] = bad or {}
        """Wanted name → its lines that could not be read; names without any are left out."""

    def declares(self, name: str) -> bool:
        """Tell whether the page has a TYPE line for this sample name.

        OpenMetrics declares counters without their `_total`; a histogram is declared without its `_bucket`. A page
        that breaks off in the middle of a line declares nothing: the samples may be in what is missing.
        """
        if not self._page.endswith((b"\n", b"# EOF")):
            return False
        if self._declared is None:
            found = (name for window in _windows(self._page) for name in _TYPE_LINES.findall(window))
            self._declared = frozenset(_canonical(_text(name)) for name in found)
        canonical = _canonical(name)
        return any(canonical.removesuffix(suffix) in self._declared for suffix in ("", "_total", "_bucket"))


def starts_with(prefixes: Iterable[str]) -> Callable[[bytes], bool]:
    """Return a function that tells whether any line of a page, or the name in it, starts with one of `prefixes`."""
    prefixes = tuple(prefixes)
    anywhere = [spelling.encode() for spell in (str, _canonical) for spelling in map(spell, prefixes)]
    start = rb"[ \t]*+(?:#[ \t]++(?:TYPE|HELP)[ \t]++|\{[ \t]*+)?+\"?%b" % _one_of(prefixes)
    first, later = re.compile(start), re.compile(rb"\n" + start)

    def found(page: bytes) -> bool:
        if not any(text in page for text in anywhere):  # the quick answer for most pages of others
            return False
        return first.match(page) is not None or later.search(page) is not None

    return found


def _windows(page: bytes) -> Iterator[bytes]:
    """Cut a page into whole lines of about a megabyte together; each line has a newline before it."""
    start = 0
    while start < len(page):
        end = page.find(b"\n", start + _WINDOW)
        end = len(page) if end < 0 else end
        yield b"\n" + page[start:end]
        start = end + 1


def _one_of(names: Iterable[str]) -> bytes:
    """Return a pattern for any of `names`, in which common beginnings are compared only once."""
    tails: dict[str, list[str]] = {}
    for name in names:
        tails.setdefault(name[:1], []).append(name[1:])
    if "" in tails:
        rest = [first + tail for first, ends in tails.items() if first for tail in ends]
        return rb"(?:%b)?" % _one_of(rest) if rest else b""
    branches = [
        (b"[:_]" if first == ":" else re.escape(first).encode()) + _one_of(ends) for first, ends in tails.items()
    ]
    return branches[0] if len(branches) == 1 else b"(?:%b)" % b"|".join(branches)


_NAME = re.compile(rb"[a-zA-Z_:][a-zA-Z0-9_:]*+")
_QUOTED_NAME = re.compile(rb'\{[ \t]*+"([^"\\]*+)"')
_TEXT = rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_TERM = re.compile(
    rb"[ \t]*+(?:([a-zA-Z_:][a-zA-Z0-9_:]*+)|%b)[ \t]*+(?:=[ \t]*+%b[ \t]*+)?+([,}])" % (_TEXT, _TEXT), re.DOTALL
)
_BEGIN = re.compile(rb"[ \t]*+\{")
_END = re.compile(rb"[ \t]*+\}")
_ESCAPE = re.compile(rb'\\([\\n"])')
_TYPE_LINES = re.compile(rb'\n[ \t]*+#[ \t]++TYPE[ \t]++"?([^ \t\r\n"]++)')


def _parse_series(line: bytes) -> tuple[str, Labels, int]:
    """Return name, labels and the position behind them. Raises ValueError."""
    named = _NAME.match(line)
    name = _text(named[0]) if named else None
    labels: Labels = {}
    opened = _BEGIN.match(line, named.end() if named else 0)
    if not opened:
        if not named or name is None:
            raise ValueError("no name")
        return name, labels, named.end()
    position = opened.end()
    closed = _END.match(line, position)
    while not closed:
        term = _TERM.match(line, position)
        if not term or len(labels) >= MAX_LABELS:
            raise ValueError("labels")
        bare, quoted, value, separator = term.groups()
        label = bare.decode() if quoted is None else _unescape(quoted)
        if value is None:  # the name, as UTF-8 names are written
            if name is not None or bare is not None:
                raise ValueError("a second name")
            name = label
        elif label in labels:
            raise ValueError("a label twice")
        else:
            labels[label] = _unescape(value)
        position = term.end()
        closed = _END.match(line, position) if separator == b"," else term
    if name is None:
        raise ValueError("no name")
    return name, labels, closed.end()


def _parse_value(text: bytes) -> float:
    """Return the value; a timestamp and an exemplar may follow it. Raises ValueError."""
    value, *more = text.split(None, 2) or [b""]
    if more and not more[0].startswith(b"#"):
        _number(more.pop(0))
    if more and not more[0].startswith(b"#"):
        raise ValueError("text behind the timestamp")
    return _number(value)


def _number(text: bytes) -> float:
    """Return what Prometheus takes for a number: Python's own takes 1_000 too. Raises ValueError."""
    if _UNDERSCORE in text:
        raise ValueError("an underscore in a number")
    return float(text)


def _unescape(raw: bytes) -> str:
    if b"\\" in raw:
        raw = _ESCAPE.sub(lambda escape: b"\n" if escape[1] == b"n" else escape[1], raw)
    return _text(raw)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _canonical(name: str) -> str:
    return name.replace(":", "_")
