"""The tutorial runs as printed, but on free ports, and what it shows is what comes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.docs.pages import FENCE, ROOT
from tests.waiting import until

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
PORTS = ("9090", "8080", "8000")
RUN = TUTORIAL[TUTORIAL.index("\n## 1.") : TUTORIAL.index("\n## To your cluster")]
"""What needs no cluster and comes after the installation."""


def steps() -> Iterator[tuple[str, list[str]]]:
    """Each shell block, with the lines that the page shows as its output."""
    script = ""
    for block in FENCE.finditer(RUN):
        if block["language"] == "sh":
            if script:
                yield script, []
            script = block["text"]
        else:
            yield script, block["text"].splitlines()
            script = ""


@pytest.fixture
def ports() -> Mapping[str, str]:
    """A free port for each that is printed."""
    with_each = [socket.create_server(("127.0.0.1", 0)) for _ in PORTS]
    free = {printed: str(each.getsockname()[1]) for printed, each in zip(PORTS, with_each, strict=True)}
    for each in with_each:
        each.close()
    return free


async def test_the_tutorial_runs_as_printed(tmp_path: Path, ports: Mapping[str, str]) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "VLLM_SCALER_SERVER": f"localhost:{ports['9090']}",
        "KUBECONFIG": "/dev/null",
    }
    shells: list[asyncio.subprocess.Process] = []
    try:
        for number, (script, shown) in enumerate(steps()):
            here = re.sub("|".join(PORTS), lambda port: ports[port[0]], script)
            said = tmp_path / f"{number}.out"
            with said.open("wb") as output:
                shell = await asyncio.create_subprocess_exec(
                    *("bash", "-o", "pipefail", "-c", here),
                    stdout=output,
                    stderr=output,
                    cwd=tmp_path,
                    env=environment,
                    start_new_session=True,
                )
            shells.append(shell)
            status = await asyncio.wait_for(shell.wait(), 240)
            if script.rstrip().endswith("&"):
                await _stands(script, shown, said, ports)
            else:
                assert status == (1 if any("error:" in line for line in shown) else 0), said.read_text("utf-8")
            assert not _missing(shown, said), said.read_text("utf-8")
    finally:
        for shell in shells:  # what was left in the background is in the group of its shell
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert len(shells) >= 6


async def _stands(script: str, shown: Sequence[str], said: Path, ports: Mapping[str, str]) -> None:
    """Wait until what runs in the background has said what the page shows, and listens."""

    def listens(port: str) -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", int(port))) == 0

    used = [ports[port] for port in PORTS if port in script]
    await until(
        lambda: all(map(listens, used)) and not _missing(shown, said), f"{script}: listens and tells", timeout_s=120
    )


def _missing(shown: Sequence[str], said: Path) -> list[str]:
    """Lines that are shown and did not come. Numbers may differ, and what stands behind an ellipsis."""
    came = [_loose(line) for line in said.read_text("utf-8").splitlines()]
    return [line for line in shown if not any(each.startswith(_loose(line.partition("…")[0])) for each in came)]


def _loose(line: str) -> str:
    return re.sub(r"[\d.,]+", "#", " ".join(line.split()))
