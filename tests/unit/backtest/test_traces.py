"""Traces are read as they are, or refused with the line and what would be right."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from scaler.backtest.traces import SYNTHETIC, TraceError, find, read
from scaler.backtest.traces.table import seconds
from scaler.backtest.traces.trace import COPY_SPREAD_S, Listed

DATA = Path(__file__).parents[2] / "data" / "traces"
AZURE, PLAIN, RATES = (
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "arrival_s,prompt_tokens,output_tokens",
    "window_start_s,requests_per_s",
)


def trace(folder: Path, *lines: str, end: str = "\n") -> Path:
    path = folder / "trace"
    path.write_text("\n".join(lines) + end)
    return path


@pytest.mark.parametrize(
    ("name", "requests", "prompt_tokens"),
    [
        ("azure-code.csv", 399, 4808),
        ("mooncake-conversation.jsonl", 400, None),
        ("servegen-m-large-day.csv", None, None),
    ],
)
def test_public_traces_are_found_out_by_their_first_line(
    name: str, requests: int | None, prompt_tokens: int | None
) -> None:
    found = read(DATA / name)
    drawn = (found if requests else found.between(0, 600).scaled(0.01)).requests(1)
    assert requests is None or len(drawn) == requests
    assert prompt_tokens is None or drawn[0].prompt_tokens == prompt_tokens
    assert [each.arrival_s for each in drawn] == sorted(each.arrival_s for each in drawn)
    assert all(0 <= each.arrival_s < found.duration_s for each in drawn)


def test_a_coarse_clock_is_spread_over_its_steps_by_the_seed() -> None:
    found = read(DATA / "mooncake-conversation.jsonl")
    first, second = found.requests(1), found.requests(2)
    assert len({each.arrival_s for each in first}) == len(first)
    assert first == found.requests(1) != second
    assert sum(each.prompt_tokens for each in first) == sum(each.prompt_tokens for each in second)
    assert any(each.cached_tokens for each in first)


def test_a_table_of_rates_makes_as_many_requests_as_its_rates_say() -> None:
    day = read(DATA / "servegen-m-large-day.csv").scaled(0.02)
    assert day.duration_s == 86_400
    rates = [float(line.split(",")[1]) for line in (DATA / "servegen-m-large-day.csv").read_text().splitlines()[1:7]]
    expected = 600 * sum(rates) * 0.02
    assert len(day.between(0, 3600).requests(3)) == pytest.approx(expected, rel=0.05)


def test_unsorted_times_blank_lines_seven_decimals_and_no_last_newline_are_read(tmp_path: Path) -> None:
    path = trace(
        tmp_path,
        AZURE,
        "2023-11-16 18:17:05.0000001,30,3",
        "",
        "2023-11-16 18:17:03.9799600,10,1",
        "2023-11-16 19:17:04+01:00,20,0",
        end="",
    )
    requests = read(path).requests(0)
    assert [each.prompt_tokens for each in requests] == [10, 20, 30]
    assert [each.output_tokens for each in requests] == [1, 1, 3]
    assert [each.arrival_s for each in requests] == pytest.approx([0.0, 0.02004, 1.0200401], abs=1e-6)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "is empty; its first line should be"),
        (["time,tokens", "1,2"], "line 1: 'time,tokens' is no known beginning"),
        ([PLAIN], "holds no request"),
        ([PLAIN, "0,10,5", "1,-3,5"], "line 3: prompt_tokens is '-3'; a whole number from 1 to"),
        ([PLAIN, "0,10,-1"], "line 2: output_tokens is '-1'; a whole number from 0 to"),
        ([PLAIN, "0,10.5,1"], "line 2: prompt_tokens is '10.5'"),
        ([PLAIN, "0,10"], "line 2: 2 columns; 3 are expected"),
        ([PLAIN, "0,99999999999999999999999,1"], "line 2: prompt_tokens is '99999999999999999999999'; a whole number"),
        ([AZURE, "2023-11-16 18:17:03,10,1", "17.5,10,1"], "line 3: the time '17.5' is more than a year away"),
        (['{"timestamp": 1e300, "input_length": 5, "output_length": 1}'], "line 1: timestamp is 1e+300"),
        ([PLAIN, "nan,10,1"], "line 2: the time is 'nan'"),
        ([AZURE, "yesterday,10,1"], "line 2: the time is 'yesterday'"),
        ([RATES, "0,1", "600,2", "1800,3"], "line 4: the window begins at 1800 s; 1200 is expected"),
        ([RATES, "0,1", "600,-2"], "line 3: the rate is '-2'"),
        ([RATES, "0,1"], "at least two are expected"),
        (['{"timestamp": 0, "input_length": 5, "output_length": 1}', "{"], "line 2: a JSON object is expected"),
        (['{"timestamp": 0, "input_length": 0, "output_length": 1}'], "line 1: input_length is 0"),
        (['{"timestamp": 0, "input_length": 9}'], "line 1: output_length is None"),
        (['{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": ["x"]}'], "line 1: hash_ids is"),
        (['{"recording": "vllm-scaler", "version": 1}'], "holds no tick"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_line(tmp_path: Path, lines: list[str], words: str) -> None:
    path = trace(tmp_path, *lines, end="\n" if lines else "")
    with pytest.raises(TraceError) as refusal:
        read(path)
    assert str(path) in str(refusal.value)
    assert words in str(refusal.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"\x80\x81\xff")
    with pytest.raises(TraceError, match="UTF-8"):
        read(path)


def test_a_million_requests_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(PLAIN + "\n" + "".join(f"{i * 0.01:.7f},100,10\n" for i in range(1_000_000)))
    found = read(path)
    assert found.duration_s == pytest.approx(10_000.0)
    assert isinstance(found.draw, Listed)
    assert len(found.draw.arrival_s) == 1_000_000


def test_a_misspelt_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(TraceError, match="did you mean llm-d-ramp"):
        find("llmd-ramp")


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_seed_makes_the_same_requests_and_another_seed_others(name: str) -> None:
    made = SYNTHETIC[name]
    assert made.requests(1) == made.requests(1) != made.requests(2)


def test_two_halves_are_the_whole() -> None:
    whole = SYNTHETIC["pulse"]
    first, second = whole.between(0, 900), whole.between(900, 1800)
    together = [*first.requests(4), *second.requests(4)]
    assert [each.prompt_tokens for each in together] == [each.prompt_tokens for each in whole.requests(4)]
    assert second.requests(4)[0].arrival_s < 900


@pytest.mark.parametrize(("begin", "end"), [(10, 10), (4000, 5000), (-1, 10)])
def test_a_part_without_time_is_refused(begin: float, end: float) -> None:
    with pytest.raises(TraceError, match="there is nothing from"):
        SYNTHETIC["pulse"].between(begin, end)


@pytest.mark.parametrize("factor", [0.0, -1.0, 1001.0, float("nan")])
def test_a_scale_that_makes_no_traffic_is_refused(factor: float) -> None:
    with pytest.raises(TraceError, match="right is a number above 0, up to 1000"):
        SYNTHETIC["pulse"].scaled(factor)


@pytest.mark.parametrize("factor", [0.25, 1.0, 2.5, 4.0])
def test_a_scaled_trace_has_as_many_requests_as_asked_for_in_order_and_within_its_time(factor: float) -> None:
    whole = read(DATA / "azure-code.csv")
    scaled = whole.scaled(factor)
    drawn = scaled.requests(3)
    assert len(drawn) == pytest.approx(factor * len(whole.requests(3)), rel=0.1)
    assert [each.arrival_s for each in drawn] == sorted({each.arrival_s for each in drawn})
    assert 0 <= drawn[0].arrival_s <= drawn[-1].arrival_s < scaled.duration_s
    assert drawn == scaled.requests(3)


def test_copies_stay_in_their_burst() -> None:
    whole = read(DATA / "azure-code.csv")
    times = [each.arrival_s for each in whole.requests(3)]
    for copy in whole.scaled(3).requests(3):
        assert any(time <= copy.arrival_s <= time + COPY_SPREAD_S for time in times)


def test_a_packed_file_reads_like_the_file(tmp_path: Path) -> None:
    packed = tmp_path / "azure-code.csv.gz"
    packed.write_bytes(gzip.compress((DATA / "azure-code.csv").read_bytes()))
    plain = read(DATA / "azure-code.csv")
    assert read(packed).name == plain.name
    assert read(packed).requests(1) == plain.requests(1)


@pytest.mark.parametrize(
    "content",
    [b"TIMESTAMP,ContextTokens", gzip.compress(b"arrival_s,prompt_tokens" * 99)[:-9]],
    ids=["not packed", "cut off"],
)
def test_a_broken_packed_file_is_refused(tmp_path: Path, content: bytes) -> None:
    broken = tmp_path / "trace.csv.gz"
    broken.write_bytes(content)
    with pytest.raises(TraceError, match=r"trace\.csv\.gz.*no whole gzip file"):
        read(broken)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01 00:00:01", 1.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01 01:00:00.25+01:00", 0.25),
        ("12.5", 12.5),
    ],
)
def test_times_are_stamps_or_seconds(text: str, expected: float) -> None:
    assert seconds(text) == expected
