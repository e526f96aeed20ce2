"""Every command with what it cannot take: a few words that say so, a documented exit status, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scaler.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `missing` is missing, and the others are not what a command hopes for."""
    monkeypatch.setenv("COLUMNS", "300")  # a box that breaks no line
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "text").write_text("neither one thing nor the other\n" * 1000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def status(arguments: Sequence[str]) -> object:
    """How the program ends; another end than an exit status fails the test, as it would show a traceback."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


FILES = ("missing", "folder", "empty", "binary", "text")
TAKES_A_FILE = {
    "read": ["read", "{}"],
    "lint": ["lint", "{}"],
    "policies": ["lint", "empty", "--policies", "{}"],
    "explain": ["explain", "{}"],
    "init": ["init", "-f", "{}"],
    "former": ["init", "--from", "{}"],
}
HARMLESS = {("lint", "empty"), ("lint", "text"), ("policies", "empty")}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("command", TAKES_A_FILE)
def test_a_file_that_is_not_for_the_command_is_told_in_few_words(command: str, file: str, capsys: Capture) -> None:
    code = status([word.replace("{}", file) for word in TAKES_A_FILE[command]])
    told = "".join(capsys.readouterr())
    assert code in ((0,) if (command, file) in HARMLESS else (1, 2, 3))
    assert 0 < len(told) < 1500


@pytest.mark.parametrize("number", ["nan", "inf", "1e999", "-1", "9" * 400, "9" * 5000, "x", ""])
@pytest.mark.parametrize(
    "arguments",
    [["lint", "empty", "--start-up-time="], ["init", "-f", "empty", "--start-up-time="]],
    ids=["lint", "init"],
)
def test_a_duration_that_is_none_is_told(arguments: list[str], number: str, capsys: Capture) -> None:
    assert status([*arguments[:-1], arguments[-1] + number]) == 2
    assert "is wrong" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("option", ["--warm-image", "--warm-priority-class"])
def test_a_name_that_is_empty_is_told_before_placeholders_are_made_of_it(option: str, capsys: Capture) -> None:
    assert status(["serve", "--warm=placeholders", f"{option}="]) == 2
    told = capsys.readouterr().err
    assert option in told
    assert "it is empty" in told


@pytest.mark.parametrize("text", ["\0", "[", "pool", "pool: {}"])
def test_budgets_are_refused_before_anything_is_served(text: str, folder: Path, capsys: Capture) -> None:
    (folder / "budgets.yaml").write_text(text)
    assert status(["serve", "--budgets=budgets.yaml"]) == 1
    assert "budgets.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["empty", "binary", "text"])
@pytest.mark.parametrize(
    ("options", "named"), [(["--ca-file={}"], "--ca-file"), (["--cert-file={}", "--key-file={}"], "--cert-file")]
)
def test_what_is_no_certificate_is_told_before_anybody_is_asked(
    options: list[str], named: str, file: str, capsys: Capture
) -> None:
    assert status(["targets", "--server=127.0.0.1:1", *(option.replace("{}", file) for option in options)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert named in told
    assert "PEM file" in told


class Interrupted:
    """Standard input at which somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.buffer = self

    def read(self, _most: int) -> bytes:
        raise KeyboardInterrupt


@pytest.mark.parametrize("command", [["read", "-"], ["lint", "-"], ["init", "-f", "-"]], ids=lambda words: words[0])
def test_ctrl_c_ends_a_command_as_shells_expect_it(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert status(command) == 130
    assert capsys.readouterr().out == ""


def test_ctrl_c_before_a_command_is_there_is_no_fault_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("scaler.cli.import_module", press)
    assert status(["read", "-"]) == 130
