from __future__ import annotations

import asyncio
import math
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaler.exposition.sample import COUNTERS, HISTOGRAMS, Histogram, Reading, Sample
from scaler.sources.record_format import Tick
from scaler.sources.recording import Recorder, RecordingError, read_recording
from scaler.sources.source import Unknown

amounts = st.floats(0, 1e15)
gauges = st.none() | amounts


@st.composite
def histograms(draw: st.DrawFn) -> Histogram:
    finite = draw(st.lists(st.floats(1e-3, 1e4), max_size=5, unique=True))
    bounds = (*sorted(finite), math.inf)
    counts = sorted(draw(st.lists(amounts, min_size=len(bounds), max_size=len(bounds))))
    return Histogram(bounds, tuple(counts), draw(amounts))


reading_fields = {
    "waiting": gauges,
    "running": gauges,
    "kv_cache_usage": gauges,
    "waiting_deferred": gauges,
    "asleep": st.booleans(),
    "counters": st.dictionaries(st.sampled_from(COUNTERS), amounts),
    "histograms": st.dictionaries(st.sampled_from(HISTOGRAMS), histograms()),
    "unknown": st.dictionaries(st.sampled_from(["waiting", "kv_cache_usage"]), st.text()),
}
readings = st.builds(Reading, **reading_fields)
samples = st.builds(
    Sample,
    **reading_fields,
    engine=st.sampled_from(["vllm", "sglang"]),
    engines=st.dictionaries(st.sampled_from(["", "0", "1"]), readings),
)
counts = st.integers(0, 1000)
ticks = st.builds(
    Tick,
    time=st.floats(0, 2e9),
    target=st.sampled_from(["prod/chat", "prod/code", "lab/chat"]),
    requested=counts,
    current=counts,
    ready=counts,
    starting=counts,
    terminating=counts,
    unschedulable=counts,
    minimum=counts,
    maximum=counts,
    pods=st.dictionaries(st.text(), samples | st.builds(Unknown, st.text())),
)


def idle_tick(time: float = 1000.0, **pods: Sample | Unknown) -> Tick:
    return Tick(time, "prod/chat", 1, 1, len(pods), 0, 0, 0, 1, 8, pods)


def one_engine(**values: float) -> Sample:
    return Sample(engine="vllm", engines={"0": Reading(**values)}, **values)


def record(path: Path, *recorded: Tick, max_bytes: int = 2**30) -> None:
    async def run() -> None:
        recorder = Recorder(path, max_bytes=max_bytes)
        for tick in recorded:
            recorder.record(tick)
        recorder.close()
        assert recorder.failure is None

    asyncio.run(run())


@given(recorded=st.lists(ticks, max_size=4))
@settings(deadline=None)
def test_what_was_recorded_is_read_back_as_it_was(recorded: list[Tick], tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("recording") / "ticks.jsonl"

    record(path, *recorded)

    assert list(read_recording(path)) == recorded


def test_the_usual_page_of_one_engine_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"

    record(path, idle_tick(chat_0=one_engine(waiting=3.0)))

    *_, line = path.read_bytes().splitlines()
    assert orjson.loads(line)["pods"]["chat_0"] == {"engine": "vllm", "waiting": 3.0, "engines": {"0": None}}


def test_bounds_are_written_once(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"
    sample = Sample(engine="vllm", histograms={"ttft": Histogram((0.1, 0.5, math.inf), (1, 2, 3), 0.9)})

    record(path, idle_tick(1.0, a=sample, b=sample), idle_tick(2.0, a=sample))

    assert path.read_text().count('"bounds"') == 1


def test_a_second_run_is_appended_to_the_first(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"
    histogram = Histogram((0.5, math.inf), (2.0, 3.0), 0.9)
    first = idle_tick(1.0, a=Sample(engine="vllm", histograms={"ttft": histogram}))
    second = idle_tick(2.0, a=Sample(engine="vllm", histograms={"itl": histogram}))

    record(path, first)
    record(path, second)

    assert list(read_recording(path)) == [first, second]


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_last_line_torn_by_a_crash_is_passed_over(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ticks.jsonl"
    record(path, idle_tick(1.0), idle_tick(2.0))
    path.write_bytes(path.read_bytes()[:-cut])

    times = [tick.time for tick in read_recording(path)]

    assert times == ([1.0, 2.0] if cut == 1 else [1.0])


def test_a_run_after_a_crash_leaves_a_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"
    record(path, idle_tick(1.0), idle_tick(2.0))
    path.write_bytes(path.read_bytes()[:-20])

    record(path, idle_tick(3.0))

    assert [tick.time for tick in read_recording(path)] == [1.0, 3.0]


HEADER = '{"recording":"vllm-scaler","version":1}\n'
TICK = (
    '{"time":1.0,"target":"prod/chat","requested":1,"current":1,"ready":1,"starting":0,"terminating":0,'
    '"unschedulable":0,"minimum":1,"maximum":8,"pods":{}}\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: a recording begins with"),
        ("hello\n", "line 1: a JSON object is expected"),
        ("hello\nworld\n", "line 1: a JSON object is expected"),
        (TICK, "line 1: .* is expected first: this is no recording"),
        (HEADER.replace("1}", "2}"), "line 1: version 1 is expected, found 2"),
        (HEADER + '{"time":1,\n' + TICK, "line 2: a JSON object is expected"),
        (HEADER + "[]\n" + TICK, 'line 2: an object with "recording", "bounds" .* or "time" is expected'),
        (HEADER + '{"bounds":["x"]}\n', 'line 2: an object with "recording", "bounds" .* or "time" is expected'),
        (HEADER + TICK.replace('"ready":1', '"ready":"many"'), "line 2: ready: .*integer.*found 'many'"),
        (HEADER + TICK.replace('"ready":1,', ""), "line 2: ready: Field required"),
        (HEADER + TICK.replace('"pods":{}', '"pods":{"a":5}'), "line 2: pods.a.*found 5"),
        (
            HEADER + TICK.replace('"pods":{}', '"pods":{"a":{"waiting":"high"}}'),
            "line 2: pods.a.*waiting: .*number.*found 'high'",
        ),
        (
            HEADER + TICK.replace('"pods":{}', '"pods":{"a":{"histograms":{"ttft":[0,[1],2]}}}'),
            "line 2: pods.a.*histograms.ttft: ",
        ),
    ],
)
def test_damage_is_named_with_its_line_and_what_would_be_right(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ticks.jsonl"
    path.write_text(text)

    with pytest.raises(RecordingError, match=message):
        list(read_recording(path))


def test_ticks_before_the_damage_are_still_given(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"
    path.write_text(HEADER + TICK + "garbage\n" + TICK)
    reading = read_recording(path)

    assert next(reading).time == 1.0
    with pytest.raises(RecordingError, match="line 3"):
        next(reading)


def test_another_kind_of_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shopping.txt"
    path.write_text("bread, milk")

    with pytest.raises(RecordingError, match="exists and is no recording"):
        Recorder(path)

    assert path.read_text() == "bread, milk"


def test_a_full_file_is_set_aside_and_both_stay_within_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"
    histogram = Histogram((0.5, math.inf), (2.0, 3.0), 0.9)
    recorded = [idle_tick(t, a=Sample(engine="vllm", histograms={"e2e": histogram})) for t in range(100)]
    line = 400

    record(path, *recorded, max_bytes=5_000)

    older = path.with_name("ticks.jsonl.1")
    kept = [*read_recording(older), *read_recording(path)]
    assert kept == recorded[-len(kept) :]
    assert 0 < path.stat().st_size < 5_000 + line
    assert 5_000 <= older.stat().st_size < 5_000 + line


async def test_a_tick_is_in_the_file_soon_after(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"
    recorder = Recorder(path)

    recorder.record(idle_tick(7.0))
    async with asyncio.timeout(10):
        while not [*read_recording(path)]:  # noqa: ASYNC110 - the file is written by a timer
            await asyncio.sleep(0.01)

    recorder.close()
    assert [tick.time for tick in read_recording(path)] == [7.0]


def test_a_disk_that_is_full_from_the_start_is_said_at_once() -> None:
    with pytest.raises(OSError, match="No space left"):
        Recorder(Path("/dev/full"))


async def test_a_disk_that_fills_up_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "ticks.jsonl"
    recorder = Recorder(path)
    with file_size_limit(10_000):
        for time in range(100):
            recorder.record(idle_tick(time, a=one_engine(waiting=1.0)))

        recorder.close()

    assert recorder.failure == f"recording to {path} ended: File too large"
    assert len([*read_recording(path)]) > 0


@contextmanager
def file_size_limit(bytes_: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
