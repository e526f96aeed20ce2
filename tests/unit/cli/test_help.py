"""What a newcomer sees: help with examples that are right, exit statuses, completion, colours only where wanted."""

from __future__ import annotations

import inspect
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest
import typer

from scaler.cli import COMMANDS, kubectl_plugin, main
from scaler.cli.help import Command

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from scaler.cli import main; main()")
BAD = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llama}
spec: {triggers: [{type: external-push, metadata: {scalerAddress: "vllm-scaler.keda.svc:9090"}}]}
"""
WIDTH = 80
LOG = """
import structlog
from scaler.cli.logs import LogFormat, LogLevel, configure
configure(LogFormat.AUTO, LogLevel.INFO)
structlog.get_logger("scaler.test").warning("the disk is full")
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of the usual width."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def page(name: str, capsys: Capture) -> str:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


def examples(name: str) -> list[str]:
    """The lines of a command's help that are there to be copied."""
    text = inspect.getdoc(getattr(import_module(f"scaler.cli.{name}"), name)) or ""
    return [line for part in text.split("\n\n") if part.startswith("\b") for line in part.splitlines()[1:]]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_fit_the_terminal_and_name_options_that_are_there(name: str, capsys: Capture) -> None:
    shown = page(name, capsys)
    lines = examples(name)
    assert any(f"vllm-scaler {name}" in line for line in lines)
    for line in lines:
        assert line in shown  # whole, on one line
        _, _, own = line.partition("#")[0].partition(f"vllm-scaler {name}")
        for option in re.findall(r"(?<!\S)--[a-z-]+", own.partition(">")[0]):
            assert option in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_is_cut_off(name: str, capsys: Capture) -> None:
    assert re.findall(r"\S*[\w:]… *│.*", page(name, capsys)) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_exit_statuses_are_told_and_the_table_of_them_is_right(name: str, capsys: Capture) -> None:
    told = " ".join(page(name, capsys).split("╭")[0].split()).partition("Exit status: ")[2]
    statuses = {int(digit) for digit in re.findall(r"(?:^|, )(\d) ", told)}
    assert {0, 2} <= statuses
    rows = [line.strip("| \n").split(" | ") for line in (ROOT / "docs" / "cli.md").read_text().splitlines()]
    (head,) = (row for row in rows if row[0] == "status")
    table = {int(row[0]): row[head.index(name)] for row in rows if row[0].isdigit()}
    assert {status for status, meaning in table.items() if meaning != "–"} == statuses


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_and_flags_ask_for_no_value(name: str, capsys: Capture) -> None:
    app = typer.Typer()
    app.command(cls=Command)(getattr(import_module(f"scaler.cli.{name}"), name))
    for parameter in typer.main.get_command(app).params:
        assert getattr(parameter, "help", ""), parameter.name
    assert "<bool>" not in page(name, capsys)


def test_the_list_names_every_command_and_the_plugins_list_its_own(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out
    assert all(f"│ {name} " in listed for name in COMMANDS)
    with pytest.raises(SystemExit):
        kubectl_plugin(["--help"])
    of_plugin = capsys.readouterr().out
    assert "Usage: kubectl vllm-scaler" in of_plugin
    assert {name for name in COMMANDS if f"│ {name} " in of_plugin} == {"explain", "targets", "init", "lint"}


def test_the_documentation_names_every_command() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    assert all(f"| `vllm-scaler {name}` |" in text for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "completed"),
    [("vllm-scaler ex", "explain"), ("vllm-scaler explain --wat", "--watch"), ("vllm-scaler serve --sha", "--shadow")],
)
def test_a_shell_can_complete_commands_and_options(words: str, completed: str) -> None:
    environment = {
        "_VLLM_SCALER_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    run = subprocess.run(COMMAND, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == [completed]


SHOWS_COLOURS: Mapping[str, Sequence[str]] = {
    "help": (*COMMAND, "--help"),
    "wrong use": (*COMMAND, "lint"),
    "lint": (*COMMAND, "lint", "bad.yaml"),
    "read": (*COMMAND, "read", str(next((ROOT / "tests" / "data" / "metrics").glob("vllm*")))),
    "log": (sys.executable, "-c", LOG),
}


@pytest.mark.parametrize("command", SHOWS_COLOURS.values(), ids=SHOWS_COLOURS)
def test_a_terminal_has_colours_unless_they_are_not_wanted_and_a_pipe_has_none(
    command: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    assert has_colours(on_terminal(command, {}))
    assert not has_colours(on_terminal(command, {"NO_COLOR": "1"}))
    piped = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=60, check=False)
    assert "\x1b" not in piped.stdout + piped.stderr


def has_colours(text: str) -> bool:
    codes = {int(code) for run in re.findall(r"\x1b\[([\d;]+)m", text) for code in run.split(";")}
    return any(30 <= code <= 49 or 90 <= code <= 107 for code in codes)


def environment(further: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the caller's wishes about colours comes into a test."""
    wishes = ("NO_COLOR", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "CI", "TERM", "COLORTERM")
    kept = {name: value for name, value in os.environ.items() if name not in wishes}
    return kept | {"TERM": "xterm-256color", **further}


def on_terminal(command: Sequence[str], further: Mapping[str, str]) -> str:
    """What a command writes to a terminal."""
    ours, its = pty.openpty()
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env=environment(further)
        ) as process:
            os.close(its)
            said = b"".join(iter(lambda: _read(ours), b""))
            process.wait(60)
    finally:
        os.close(ours)
    return said.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return b""
