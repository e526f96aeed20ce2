"""The real engine of these tests: what a machine lacks for it is named, a failed start is told, nothing stays."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from tests.real_engine import installation
from tests.real_engine.engine import EngineError, RealEngine

pytestmark = pytest.mark.real_engine


def test_what_a_machine_lacks_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    said = installation.missing()
    assert said == "a real vLLM on the CPU needs gcc and binutils: apt-get install gcc binutils"
    with pytest.raises(installation.InstallationError, match="needs gcc"):
        installation.vllm()


def test_what_is_installed_needs_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = installation.vllm()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installation.missing() is None
    assert installation.vllm() == program


def test_an_unfinished_installation_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    python = installation.folder() / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installation.missing() is not None


def test_a_start_that_fails_tells_what_the_engine_said() -> None:
    engine = RealEngine("--no-such-option")
    with pytest.raises(EngineError, match=r"(?s)ended with status 2.*--no-such-option"):
        engine.start()
    assert not engine.alive
    assert not engine.folder.exists()


def test_a_start_that_takes_too_long_is_given_up_and_leaves_no_process_and_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.real_engine.engine.START_S", 1.0)
    engine = RealEngine()
    with pytest.raises(EngineError, match="does not serve after 1 s"):
        engine.start()
    assert not engine.folder.exists()
    assert not _processes_in(engine.folder)


def _processes_in(folder: Path) -> set[int]:
    """Processes whose working directory it is or was."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(str(folder)):
                found.add(int(link.parent.name))
    return found
