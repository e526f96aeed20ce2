"""`vllm-scaler serve` as a process of its own, for tests that start, ask and stop it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.protocol.world import PATIENCE_S

COMMAND = (sys.executable, "-c", "from scaler.cli import main; main()")
ROOT = Path(__file__).parents[2]
ANYWHERE = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--log-format", "json")


@dataclass
class Process:
    """A running `vllm-scaler serve`."""

    process: asyncio.subprocess.Process
    grpc: str
    http: str

    async def says(self, event: str) -> dict[str, Any]:
        """The next line of its log with this event."""
        assert self.process.stderr is not None
        return await asyncio.wait_for(_line(self.process.stderr, event), PATIENCE_S)

    async def end(self) -> int:
        """Its exit status."""
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)


def environment() -> dict[str, str]:
    """No cluster of the user's own comes into a test."""
    ours = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"}
    kept = {name: value for name, value in os.environ.items() if name not in ours and "VLLM_SCALER" not in name}
    return kept | {"HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)}


async def start(*options: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND, "serve", *options, stderr=asyncio.subprocess.PIPE, cwd=ROOT, env=environment()
    )


@asynccontextmanager
async def served(*options: str) -> AsyncIterator[Process]:
    process = await start(*ANYWHERE, *options)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = await _line(process.stderr, "listening")
        yield Process(process, line["grpc"], line["http"])
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _line(stream: asyncio.StreamReader, event: str) -> dict[str, Any]:
    """The next line of the log with this event."""
    said = []
    while text := await stream.readline():
        said.append(text.decode())
        line = json.loads(text)
        if line["event"] == event:
            return dict(line)
    raise AssertionError(f"it ended before it said {event!r}: {''.join(said)}")
