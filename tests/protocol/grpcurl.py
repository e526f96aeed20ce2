"""grpcurl as a person uses it: no proto files at hand, the server says what it offers."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

from tests.cluster import toolchain


class Refused(Exception):
    """The call failed; the text is what grpcurl says of it, code and message."""


async def grpcurl(address: object, *words: str, data: dict[str, Any] | None = None) -> str:
    """What grpcurl prints. Raises Refused."""
    given = ["-d", json.dumps(data)] if data is not None else []
    command = [str(toolchain.binary("grpcurl")), "-plaintext", *given, str(address), *words]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout
