"""`vllm-scaler demo` plays the whole loop: real pages, real gRPC, the HPA's arithmetic."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys

import pytest

from scaler.policy.presets import PRESETS

COMMAND = (sys.executable, "-c", "from scaler.cli import main; main()", "demo")


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((*COMMAND, *options), capture_output=True, text=True, timeout=120, check=False)


def test_the_summary_compares_with_the_threshold_on_the_same_traffic() -> None:
    run = demo("--for", "90s", "--speed", "15", "--start-up-time", "10s", "--json")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    ours, other = result["adaptive"], result["queue threshold"]
    total = {sum(policy["requests"].values()) for policy in (ours, other)}
    assert len(total) == 1  # every request ended, one way or another
    assert total.pop() > 100
    assert ours["scale_events"] >= 1
    for policy in (ours, other):
        assert set(policy) >= {"attainment", "ttft", "average_replicas", "gpu_hours", "scale_events"}
        assert 2.0 <= policy["average_replicas"] <= 12.0
        assert 0.0 <= policy["attainment"]["both"] <= 1.0


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_plays_and_tells_in_lines(preset: str) -> None:
    run = demo("--for", "60s", "--speed", "20", "--preset", preset, "--headless")
    assert run.returncode == 0, run.stderr
    assert f"vllm-scaler ({preset})" in run.stdout
    assert "vllm-scaler explain demo/llama --server 127.0.0.1:" in run.stdout
    assert "live page:   http://127.0.0.1:" in run.stdout
    told = run.stdout[run.stdout.index("look closer:") : run.stdout.index("The same traffic")].splitlines()[1:-1]
    assert [line for line in told if not re.match(r" *\d+s  wants +\d+ \(", line)] == []
    assert "Traceback" not in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--preset", "adaptve"), "is none of"),
        (("--for", "5"), "too short"),
        (("--for", "soon"), "a duration is"),
        (("--speed", "0"), "0.1"),
        (("--profile", "fast"), "is none of"),
    ],
)
def test_wrong_options_are_refused_in_words(options: tuple[str, ...], problem: str) -> None:
    run = demo(*options)
    assert run.returncode == 2
    assert problem in run.stderr


@pytest.mark.parametrize("option", ["--port", "--http-port"])
def test_a_port_that_is_taken_is_named(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = demo(option, str(port), "--headless")
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert f"cannot listen on 127.0.0.1:{port}" in line
