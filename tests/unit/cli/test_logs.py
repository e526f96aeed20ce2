"""The log: what a line holds, and what never comes into it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FAULT = """
import structlog
from scaler.cli.logs import LogFormat, LogLevel, configure

def fault():
    token = "hush-" + "hush"
    raise RuntimeError("the disk is gone")

configure(LogFormat("%s"), LogLevel.INFO)
try:
    fault()
except RuntimeError:
    structlog.get_logger("scaler.test").exception("tick failed")
"""


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_fault_is_told_with_its_place_but_without_values_that_may_be_secret(log_format: str) -> None:
    command = (sys.executable, "-c", FAULT % log_format)
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "tick failed" in run.stderr
    assert "the disk is gone" in run.stderr
    assert "hush-hush" not in run.stderr


def test_a_fault_is_one_line_for_machines() -> None:
    run = subprocess.run((sys.executable, "-c", FAULT % "json"), capture_output=True, text=True, timeout=60, check=True)
    (line,) = run.stderr.splitlines()
    assert json.loads(line)["exception"][0]["exc_type"] == "RuntimeError"
