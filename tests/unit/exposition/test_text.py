"""The page reader, measured by prometheus_client's parser."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from scaler.exposition import ENGINES
from scaler.exposition.sample import PageError
from scaler.exposition.text import MAX_LINE_BYTES, MAX_LINES, Page
from tests.unit.exposition.reference import METRICS, PAGES, by_the_library, by_the_scaler, reader, sample_names

WAITING = "vllm:num_requests_waiting"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_series_of_a_real_page_reads_as_the_library_reads_it(path: Path) -> None:
    page = path.read_bytes()
    names = sample_names(page)
    assert names
    assert _same(by_the_scaler(page, names), by_the_library(page, names))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
@pytest.mark.parametrize("dialect", ENGINES.values(), ids=ENGINES)
def test_the_names_that_a_dialect_wants_read_as_the_library_reads_them(path: Path, dialect) -> None:
    page = path.read_bytes()
    assert _same(by_the_scaler(page, dialect.sample_names), by_the_library(page, dialect.sample_names))


@pytest.mark.parametrize("path", [p for p in PAGES if p.name.startswith("vllm-metrics")], ids=lambda path: path.name)
def test_a_whole_page_given_to_the_library_says_the_same(path: Path) -> None:
    page = path.read_bytes()
    names = ENGINES["vllm"].sample_names
    whole = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name in names
    }
    assert whole
    assert _same(by_the_scaler(page, names), whole)


@pytest.mark.parametrize(
    "line",
    [
        f"{WAITING} 3",
        f"{WAITING}{{}} 3",
        f"  {WAITING}\t3",
        f"{WAITING} {{engine=\"0\"}}   3  ",
        f"{WAITING}{{engine=\"0\",}} 3",
        f"{WAITING}{{ engine = \"0\" , model_name = \"m\" }} 3",
        f"{WAITING}{{model_name=\"a}} b\",engine=\"0\"}} 3",
        f"{WAITING}{{model_name=\"a,b=c\",engine=\"0\"}} 3",
        f"{WAITING}{{model_name=\"say \\\"hi\\\"\"}} 3",
        f"{WAITING}{{model_name=\"C:\\\\models\\\\n\"}} 3",
        f"{WAITING}{{model_name=\"two\\nlines\"}} 3",
        f"{WAITING}{{model_name=\"ends in a backslash\\\\\"}} 3",
        f"{WAITING}{{model_name=\"# no comment\"}} 3",
        f"{WAITING}{{model_name=\"Modèle-模型\"}} 3",
        f"{WAITING}{{engine=\"0\"}} 3\r",
        f"{WAITING}{{engine=\"0\"}} 3 1795957101809",
        f"{WAITING}{{engine=\"0\"}} 3 # {{trace_id=\"a\"}} 0.67",
        f"{WAITING}{{engine=\"0\"}} 3 # {{trace_id=\"a}}\"}} 0.67 1.5",
        f"{WAITING} 3 # {{trace_id=\"a\"}} 0.67",
        f"{{\"{WAITING}\",engine=\"0\"}} 3",
        f" {{ \"{WAITING}\" }} 3",
        f"{WAITING}{{engine=\"0\"}} 1e+06",
        f"{WAITING}{{engine=\"0\"}} +Inf",
        f"{WAITING}{{engine=\"0\"}} -Inf",
        f"{WAITING}{{engine=\"0\"}} NaN",
        f"{WAITING}{{engine=\"0\"}} nan",
        f"{WAITING}{{engine=\"0\"}} -0.5e-3",
        f"{WAITING}{{engine=\"0\"}} 3\n{WAITING}{{engine=\"0\"}} 4",
        f"{WAITING}{{engine=\"0\"}} 3\n# TYPE {WAITING} gauge\n# HELP {WAITING} words\n{WAITING}{{engine=\"1\"}} 4",
        f"{WAITING.replace(':', '_')}{{engine=\"0\"}} 3",
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", "\n", "\n# EOF\n"], ids=["cut", "newline", "eof"])
def test_odd_but_legal_lines_read_as_the_library_reads_them(line: str, end: str) -> None:
    page = f"# HELP x y\n{line}{end}".encode()
    expected = by_the_library(page, [WAITING])
    assert expected
    assert _same(by_the_scaler(page, [WAITING]), expected)
    assert reader([WAITING]).read(page).bad == {}


@pytest.mark.parametrize(
    "name",
    [
        "vllm:num_requests_waiting_by_reason",
        "vllm:num_requests_waiting_created",
        "vllm:num_requests",
        "ray_vllm:num_requests_waiting",
        "xvllm:num_requests_waiting",
    ],
)
def test_a_name_that_only_looks_alike_is_another_name(name: str) -> None:
    assert by_the_scaler(f'{name}{{engine="0"}} 1.79e9\n{name} 5\n'.encode(), [WAITING]) == {}


@pytest.mark.parametrize(
    "line",
    [
        f"{WAITING}",
        f"{WAITING} ",
        f"{WAITING}{{engine=\"0\"}}",
        f"{WAITING}{{engine=\"0\"}} ",
        f"{WAITING}{{engine=\"0\" 3",
        f"{WAITING}{{engine=\"0}} 3",
        f"{WAITING}{{engine}} 3",
        f"{WAITING}{{engine=0}} 3",
        f"{WAITING}{{engine=\"0\",engine=\"1\"}} 3",
        f"{WAITING}{{engine=\"0\"}} three",
        f"{WAITING}{{engine=\"0\"}} 0x10",
        f"{WAITING}{{engine=\"0\"}} 1_000",
        f"{WAITING}{{engine=\"0\"}} 3 then",
        f"{WAITING}{{engine=\"0\"}} 3 4 5",
        f"{{\"{WAITING}\",engine}} 3",
        f"{WAITING}{{\"other_name\"}} 3",
    ],
)  # fmt: skip
def test_a_bad_line_is_skipped_and_counted_and_the_rest_of_the_page_is_read(line: str) -> None:
    good = f'{WAITING}{{engine="7"}} 7'
    found = reader([WAITING]).read(f"{good}\n{line}\n{good.replace('7', '8')}\n{line}\n".encode())
    assert found.cells == {WAITING: {(("engine", "7"),): 7, (("engine", "8"),): 8}}
    assert (found.bad[WAITING].count, found.bad[WAITING].first) == (2, line)


def test_bad_lines_of_other_names_are_nobodys_business() -> None:
    assert reader([WAITING]).read(b'other{engine="0 3\n{garbage\n{"other",x} 1\n\xff\xfe\x00\n').bad == {}


@pytest.mark.parametrize(
    ("page", "name", "declared"),
    [
        ("# TYPE a gauge\n", "a", True),
        ("#\tTYPE  a\tgauge\n", "a", True),
        ('# TYPE "a" gauge\n', "a", True),
        ("# TYPE a gauge\n# EOF", "a", True),
        ("# TYPE a gauge", "a", False),
        ("# TYPE a gauge\na_tot", "a", False),
        ("  # TYPE a gauge\r\n", "a", True),
        ("# TYPE vllm:a gauge\n", "vllm_a", True),
        ("# TYPE vllm_a gauge\n", "vllm:a", True),
        ("# TYPE a counter\n", "a_total", True),
        ("# TYPE a histogram\n", "a_bucket", True),
        ("# TYPE a_b gauge\n", "a", False),
        ("# HELP a words\n", "a", False),
        ("x # TYPE a gauge\n", "a", False),
        ("a 3\n", "a", False),
        ("", "a", False),
    ],
)
def test_a_name_is_declared_by_its_type_line(page: str, name: str, declared: bool) -> None:
    assert Page(page.encode(), {}).declares(name) is declared


def test_a_remembered_series_is_read_as_on_the_first_day() -> None:
    read = reader([WAITING]).read
    line = b'vllm:num_requests_waiting{engine="0"} %b\n'
    values = [b"3", b"4.0", b"1e2", b"5 1795957101809", b"6\r", b"7 # {a=\"b\"} 8", b"9"]  # fmt: skip
    assert [cell for value in values for cell in read(line % value).cells.values()] == [
        {(("engine", "0"),): number} for number in (3, 4, 100, 5, 6, 7, 9)
    ]
    assert read(line % b"1_0").cells == {}


def test_a_number_like_the_one_before_it_is_its_own_series_number_whatever_stands_between() -> None:
    read = reader([WAITING]).read
    lines = [
        b'vllm:num_requests_waiting{engine="%d"} %b\n' % each for each in enumerate([b"1", b"2 1795957101809", b"1"])
    ]
    for _ in range(2):  # the second time all but the line with a timestamp are remembered
        cells = read(b"".join(lines)).cells
        values = {key: value for cell in cells.values() for key, value in cell.items()}
        assert [values[(("engine", str(i)),)] for i in range(3)] == [1, 2, 1]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))
NAMES = st.sampled_from([WAITING, "vllm_num_requests_waiting", "vllm:prompt_tokens_total", "x_bucket", "other"])
# A name that begins with "__" is reserved, and the library refuses it.
LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(lambda name: name[:2] != "__")
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["NaN", "nan", "+Inf", "-Inf", "inf", "1e+06", "1.795957204078583e+09", "00", "+3", ".5", "5."]),
)
BLANKS = st.sampled_from(["", " ", "  ", "\t"])
GAPS = st.sampled_from([" ", "  ", "\t"])


@st.composite
def legal_lines(draw: st.DrawFn) -> str:
    """One sample in any of the ways in which it may be written."""
    name, labels = draw(NAMES), draw(st.dictionaries(LABEL_NAMES, TEXT, max_size=3))
    escape = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
    pad = draw(BLANKS)
    terms = [f'{pad}{label}{pad}={pad}"{value.translate(escape)}"{pad}' for label, value in labels.items()]
    comma = "," if terms and draw(st.booleans()) else ""
    if draw(st.booleans()):
        series = "{" + ",".join([f'{pad}"{name}"{pad}', *terms]) + "}"
    elif terms or draw(st.booleans()):
        series = f"{name}{{{','.join(terms)}{comma}}}"
    else:
        series = name
    tail = draw(st.sampled_from(["", " 1795957101809", ' # {trace_id="a}"} 0.67', ' # {} 1 1.5']))  # fmt: skip
    return draw(BLANKS) + series + draw(GAPS) + draw(NUMBERS) + tail + draw(st.sampled_from(["", " ", "\r"]))


COMMENTS = st.one_of(
    st.sampled_from(["", "# EOF", "#", f"# HELP {WAITING} {WAITING} 5", f"# TYPE {WAITING} gauge"]),
    TEXT.map(lambda text: "# " + text.replace("\n", " ")),
)


@given(st.lists(st.one_of(legal_lines(), COMMENTS), max_size=12), st.booleans())
def test_any_legal_page_reads_as_the_library_reads_it(lines: list[str], final_newline: bool) -> None:
    page = ("\n".join(lines) + "\n" * final_newline).encode()
    names = [WAITING, "vllm:prompt_tokens_total", "x_bucket"]
    found = reader(names).read(page)
    ours = {(name, labels): value for name, cell in found.cells.items() for labels, value in cell.items()}
    assert _same(ours, by_the_library(page, names))
    assert found.bad == {}


@given(st.data())
def test_no_page_however_broken_makes_the_reader_fail(data: st.DataObject) -> None:
    page = bytearray((METRICS / "vllm-rust-frontend-openmetrics.txt").read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(page) - 1), max_size=40)):
        page[position] = data.draw(st.integers(0, 255))
    names = ENGINES["vllm"].sample_names
    found = reader(names).read(bytes(page))
    assert all(isinstance(value, float) for cell in found.cells.values() for value in cell.values())
    assert set(found.bad) <= set(names)


def test_a_longer_line_than_any_engine_prints_counts_as_bad() -> None:
    line = f'{WAITING}{{model_name="{"x" * MAX_LINE_BYTES}"}} 5'
    found = reader([WAITING]).read(f'{WAITING}{{engine="1"}} 1\n{line}\n'.encode())
    assert list(found.cells[WAITING].values()) == [1]
    assert found.bad[WAITING].count == 1
    assert len(found.bad[WAITING].first) < 1000


def test_more_wanted_lines_than_any_engine_prints_are_refused() -> None:
    with pytest.raises(PageError, match=r"more than 50,000 wanted lines"):
        reader([WAITING]).read(b"".join(b"vllm:num_requests_waiting 1\n" for _ in range(MAX_LINES + 1)))


def _same(ours: dict, theirs: dict) -> bool:
    """Equality in which NaN equals NaN."""
    return ours.keys() == theirs.keys() and all(
        value == theirs[series] or (math.isnan(value) and math.isnan(theirs[series])) for series, value in ours.items()
    )
