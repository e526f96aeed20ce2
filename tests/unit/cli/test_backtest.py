"""`vllm-scaler backtest`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaler.cli import main
from scaler.exposition.sample import Sample
from scaler.sources.record_format import HEADER, Tick, encode

TRACE = "arrival_s,prompt_tokens,output_tokens\n" + "\n".join(f"{i / 2},400,40" for i in range(200))


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return str(path)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["backtest", "--jobs", "1", *arguments])
    return int(end.value.code or 0)


def test_json_has_an_object_for_each_trace_start_up_time_and_policy(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--policy", "adaptive,headroom=1", "--policy", "static-2", "--seeds", "2", "--json"]
    assert run("--trace", trace, "--start-up-time", "10s", "--start-up-time", "1m", *options) == 0
    results = json.loads(capsys.readouterr().out)
    assert [(each["policy"], each["start_up_s"]) for each in results] == [
        ("adaptive,headroom=1", 10.0),
        ("static-2", 10.0),
        ("adaptive,headroom=1", 60.0),
        ("static-2", 60.0),
    ]
    for each in results:
        assert set(each["attainment"]) == set(each["attainment_feasible"]) == {"ttft", "tpot", "both"}
        assert set(each["ttft"]) == {"p50", "p95", "p99"}
        assert each["requests"]["all"] == 200
        assert each["gpu_hours"] > 0
        assert each["half_width_95"]["attainment"]["both"] is not None


def test_troubles_are_part_of_the_answer(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--trace", trace, "--policy", "adaptive", "--seeds", "1"]
    assert run(*options, "--trouble", "crash-loop, stale", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["troubles"] == ["crash-loop", "stale"]
    assert run(*options, "--trouble", "deploy") == 0
    assert "with deploy" in capsys.readouterr().out
    assert run(*options, "--trouble", "deplow") == 2
    assert "did you mean deploy?" in capsys.readouterr().err


def test_processes_change_nothing_but_the_time(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--trace", trace, "--seeds", "2", "--policy", "adaptive", "--json"]
    run(*options)
    alone = capsys.readouterr().out
    run(*options, "--jobs", "2")
    assert capsys.readouterr().out == alone


def test_the_report_is_one_file_that_needs_no_other(trace: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert run("--trace", trace, "--seeds", "1", "--report", str(path)) == 0
    page = path.read_text()
    assert "keda-queue" in page
    assert page.count('<figure class="panel">') == 1 + 2 * 5
    assert not any(link in page for link in ("http://", "https://", "src=", "@import"))


def test_a_table_names_every_policy(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--trace", trace, "--seeds", "1") == 0
    out = capsys.readouterr().out
    assert "adaptive" in out
    assert "keda-queue" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "adaptve"], "did you mean adaptive?"),
        (["--policy", "adaptive,headrom=1"], "did you mean headroom?"),
        (["--policy", "adaptive,headroom"], "right is, for instance, headroom=10%"),
        (["--trace", "nowhere.csv"], "no such file"),
        (["--half", "third"], "none of first, second, whole"),
        (["--start-up-time", "soon"], "a number with s, m or h"),
        (["--min", "5", "--max", "2"], "0 ≤ minimum ≤ maximum"),
        (["--scale", "0"], "right is a number above 0, up to"),
        (["--scale", "nan"], "right is a number above 0, up to"),
        (["--gpus", "2", "--warm-nodes", "5"], "5 warm nodes are wrong with 2 GPUs; right are 0 to 2"),
        (["--warm-nodes", "3"], "--warm-nodes 3 says nothing without --gpus"),
        (["--node-time", "3m"], "--node-time 3m says nothing without --gpus"),
        (["--gpus", "2", "--node-time", "soon"], "a number with s, m or h"),
        (["--initial", "50", "--max", "3"], "50 replicas at the beginning are wrong with a maximum of 3"),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err


def recording(folder: Path) -> str:
    """Ten minutes of two pods, with a rise in the middle."""

    def tick(second: int) -> Tick:
        finished, ongoing = second * 0.5, 4.0 if second < 300 else 40.0
        counters = {
            "requests_finished": finished,
            "prompt_tokens": 400 * finished,
            "generation_tokens": 50 * finished,
        }
        said = Sample(waiting=0.0, running=ongoing, kv_cache_usage=0.2, counters=counters, engine="vllm")
        return Tick(1_796_000_000.0 + second, "serving/llama", 2, 2, 2, 0, 0, 0, 1, 8, {"a": said, "b": said})

    path = folder / "seen.jsonl"
    lines = [HEADER, *(encode(tick(second), lambda _: 0) for second in range(600))]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return str(path)


def test_a_recording_tells_what_another_policy_would_have_wanted_and_what_it_cannot_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path)
    assert run("--recording", path, "--policy", "adaptive,targetOngoingRequests=10", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["recorded_average"] == 2.0
    assert max(change["wanted"] for change in answer["changes"]) == 8
    assert "one past" in answer["cannot_tell"]


def test_a_recording_can_be_played_as_traffic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path)
    assert run("--trace", path, "--seeds", "1", "--policy", "static-2", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["maximum"] == 8
    assert answer["requests"]["all"] == pytest.approx(600, rel=0.25)  # one a second, and those of the rise
