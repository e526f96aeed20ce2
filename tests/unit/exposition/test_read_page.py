"""`read_page`: which page is whose, what is said of pages that are nobody's, and pages of absurd size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.exposition import ENGINES, read_page, text
from scaler.exposition.sample import PageError, Sample
from tests.unit.exposition.reference import METRICS

LOADED = (METRICS / "vllm-metrics-loaded.txt").read_bytes()
MB = 1 << 20


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (b"", "the page is empty"),
        (b" \n\n", "the page is empty"),
        (b"# EOF\n", "no metrics page"),
        (
            b'{"error":"The model is currently scaling. Please try again later."}',
            'a JSON answer instead of metrics: "The model is currently scaling. Please try again later."',
        ),
        (b'{"detail":"Not Found"}', '"Not Found"'),
        (b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}', '"Loading model"'),
        (b'[{"iter": 1}]', "/prometheus/metrics"),
        (b"{" * 60_000, "no metrics page"),
        (b"[" * 60_000, "no metrics page"),
        (b'{"a": "' + b"x" * MB + b'"}', "a long JSON answer"),
        (b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>", 'an HTML page ("502 Bad Gateway")'),
        (b"404 page not found", 'it begins with "404 page not found"'),
        (b"\x1f\x8b\x08\x00\x00\x1b[31m", "no metrics page"),
        (b'# TYPE python_info gauge\npython_info{major="3"} 1.0\n', "--disable-log-stats"),
        (b"http_requests_total 5\n", "--disable-log-stats"),
        (b"ray_node_cpu_utilization 3.0\n", "a Ray node's page without Ray Serve"),
        ((METRICS / "dcgm-exporter.txt").read_bytes(), "a DCGM exporter"),
        ((METRICS / "epp-llm-d-router.txt").read_bytes(), "a gateway's endpoint picker"),
    ],
)
def test_a_page_of_no_engine_is_an_error_that_says_what_it_is(page: bytes, words: str) -> None:
    with pytest.raises(PageError) as error:
        read_page(page)
    assert words in str(error.value)
    assert len(str(error.value)) < 400
    assert str(error.value).isprintable()


def test_a_page_of_another_engine_than_the_one_that_was_named_is_an_error_that_names_both() -> None:
    with pytest.raises(PageError, match="no page of sglang: it is one of vllm"):
        read_page(LOADED, "sglang")
    with pytest.raises(PageError, match="no page of vllm: an HTML page"):
        read_page(b"<html>", "vllm")


def test_an_engine_that_nobody_knows_is_the_callers_mistake() -> None:
    with pytest.raises(KeyError):
        read_page(LOADED, "vlm")


def test_the_first_line_of_a_page_counts() -> None:
    assert read_page(b'vllm:num_requests_waiting{engine="0"} 3').waiting == 3
    assert read_page(b'{"vllm:num_requests_waiting",engine="0"} 3').waiting == 3


def test_a_broken_line_in_the_middle_costs_nothing_but_itself() -> None:
    lines = LOADED.split(b"\n")
    lines.insert(len(lines) // 2, b"\x00\xff<<< proxy error {{{")
    assert read_page(b"\n".join(lines)) == read_page(LOADED)


def test_line_ends_of_windows_change_nothing() -> None:
    assert read_page(LOADED.replace(b"\n", b"\r\n")) == read_page(LOADED)


def test_a_page_cut_in_the_middle_of_a_line_never_reads_as_an_idle_engine() -> None:
    start = LOADED.index(b"\nvllm:num_requests_waiting{") + 1
    end = LOADED.index(b" 44.0", start) + 1
    for cut in range(start + 1, end):
        sample = read_page(LOADED[:cut])
        assert sample.waiting is None
        assert "waiting" in sample.unknown


@given(st.data())
def test_no_page_however_broken_fails_with_anything_but_a_page_error(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["tgi.txt", "lmdeploy.txt", "triton-trtllm.txt", "ray-2.60.0-agent-8080.txt"]))
    page = bytearray((METRICS / name).read_bytes()[-6000:])
    for position in data.draw(st.lists(st.integers(0, len(page) - 1), max_size=30)):
        page[position] = data.draw(st.integers(0, 255))
    engine = data.draw(st.sampled_from([None, *ENGINES]))
    try:
        sample = read_page(bytes(page), engine)
    except PageError:
        return
    for reading in (sample, *sample.engines.values()):
        for value in (reading.waiting, reading.running):
            assert value is None or 0 <= value <= 1e9 * len(page)
        assert reading.kv_cache_usage is None or 0 <= reading.kv_cache_usage <= 1


@given(st.binary(max_size=300))
def test_bytes_that_are_no_page_are_a_page_error(page: bytes) -> None:
    with pytest.raises(PageError):
        read_page(page)


# --- absurd sizes


def filled(line: Callable[[int], bytes], size: int) -> bytes:
    return b"".join(line(i) for i in range(1 + size // len(line(0))))


def measured(page: bytes) -> tuple[Sample | PageError, int]:
    """What came of a page, and the most memory that reading it took, in bytes."""
    tracemalloc.start()
    try:
        try:
            outcome: Sample | PageError = read_page(page)
        except PageError as error:
            outcome = error
        return outcome, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "filler",
    [
        pytest.param(lambda i: b'other_metric{series="%d"} 1.0\n' % i, id="other series"),
        pytest.param(lambda i: b"\n" * MB, id="empty lines"),
        pytest.param(lambda i: b"# HELP words of no use\n", id="comments"),
        pytest.param(lambda i: b"x" * 7 * MB + b"\n", id="lines of 7 MB"),
        pytest.param(lambda i: b'other{label="' + b'\\"' * 3 * MB + b'"} 1\n', id="labels of 6 MB"),
        pytest.param(lambda i: b'vllm:num_requests_waiting_created{engine="%d"} 1.79e+09\n' % i, id="names alike"),
        pytest.param(lambda i: b" \t" * MB + b"\n", id="blanks"),
    ],
)
def test_a_page_of_22_mb_reads_as_without_its_ballast_and_takes_little_memory(filler: Callable[[int], bytes]) -> None:
    ballast = filled(filler, 11 * MB)
    sample, peak = measured(ballast + LOADED + ballast)
    assert sample == read_page(LOADED)
    assert peak < 30 * MB


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(lambda i: b'vllm:num_requests_waiting{engine="%d"} 1\n' % i, id="engines without end"),
        pytest.param(lambda i: b'vllm:num_requests_waiting{engine="0\n', id="bad lines without end"),
        pytest.param(lambda i: b"{" * 40 + b"\n", id="braces"),
        pytest.param(lambda i: b'{"vllm:num_requests_waiting","\n', id="quoted names"),
    ],
)
def test_wanted_lines_without_end_are_refused_and_take_little_memory(line: Callable[[int], bytes]) -> None:
    outcome, peak = measured(b"# TYPE vllm:num_requests_waiting gauge\n" + filled(line, 4 * MB))
    assert isinstance(outcome, PageError)
    assert "wanted lines" in str(outcome)
    assert peak < 100 * MB


@pytest.mark.parametrize("label", [b"x" * 7 * MB, b'\\"' * 4 * MB, b"\\\\" * 4 * MB], ids=["long", "quotes", "escapes"])
def test_a_wanted_series_with_a_label_of_7_mb_is_unknown_and_the_rest_is_read(label: bytes) -> None:
    line = b'vllm:num_requests_waiting{engine="0",model_name="%b"} 5\n' % label
    outcome, peak = measured(line + LOADED)
    assert isinstance(outcome, Sample)
    assert outcome.waiting is None
    assert "cannot be read" in outcome.unknown["waiting"]
    assert outcome.running == 4
    assert peak < 4 * len(line)


def test_ever_new_series_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_REMEMBERED_SERIES", 1000)

    def remembered(pages: range) -> int:
        for i in pages:
            read_page(LOADED.replace(b'model_name="tiny"', b'model_name="tiny-%d"' % i))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        soon = remembered(range(20))
        assert remembered(range(20, 100)) < soon + MB
    finally:
        tracemalloc.stop()
