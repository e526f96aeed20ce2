"""`make demo-cluster`: what it prints works, and nothing is left of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The demo; its temporary files lie in a folder of their own."""
    command = [sys.executable, "-m", "tests.cluster.demo"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()


def until(demo: subprocess.Popen[str], pattern: str) -> str:
    """What it says up to a line that matches."""
    assert demo.stdout is not None
    said = ""
    for line in demo.stdout:
        said += line
        if re.search(pattern, line):
            return said
    raise AssertionError(f"it ended without {pattern!r}:\n{said}")


def processes(mark: str) -> list[str]:
    """Command lines in which a text occurs."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if mark in line:
            found.append(line)
    return found


def test_what_it_prints_works_and_nothing_is_left(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    said = until(demo, r"\d requests/s .* of +\d+ replicas")
    exports = [line for line in said.splitlines() if line.startswith("  export ")]
    commands = [
        line
        for line in said.splitlines()
        if line.startswith("  ") and line not in exports and "--watch" not in line and "requests/s" not in line
    ]
    assert len(exports) == 2
    assert len(commands) >= 8
    for command in commands:
        script = "\n".join([*exports, command])
        done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout, command
    assert processes(str(tmp_path))

    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 0
    assert list(tmp_path.iterdir()) == []
    assert processes(str(tmp_path)) == []


def test_it_ends_by_itself_when_its_time_is_over(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.cluster.demo", "--for", "3s"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "It runs for 3 s" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_without_go_it_says_so_in_one_line(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "tests.cluster.demo"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert re.fullmatch(r"Go \S+ or newer is needed .*\n", done.stderr)
    assert list(tmp_path.glob("vllm-scaler-*")) == []
