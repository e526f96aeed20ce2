"""`vllm serve` as a process on loopback: a real engine with few batch slots, so that a queue soon forms."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.real_engine import installation, tiny_model

MODEL = "tiny"
SLOTS = 4
"""Requests that run at a time; all others wait."""

START_S = 300.0
"""How long a start may take: ten times what it takes on two idle cores."""
_STOP_S = 30.0
_LINES_TOLD = 40

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
}


class EngineError(Exception):
    """The engine did not come up; the text ends with its log's last lines."""


class RealEngine:
    """A context manager: up and healthy inside, gone with everything that it wrote afterwards."""

    def __init__(self, *options: str, **settings: str) -> None:
        """`options` are further ones of `vllm serve`, `settings` further variables of its environment."""
        self._options = options
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path()
        """Everything that the engine writes, its log too; also its processes' working directory."""
        self.address = ""
        """HOST:PORT."""

    @property
    def url(self) -> str:
        """The server's address without a path."""
        return f"http://{self.address}"

    @property
    def alive(self) -> bool:
        """Whether the server's process runs."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Return when the engine is healthy. Raises EngineError, and InstallationError."""
        installation.vllm()
        self.folder = Path(tempfile.mkdtemp(prefix="vllm-"))
        model = self.folder / "model"
        tiny_model.write(model)
        self.address = f"127.0.0.1:{_free_port()}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ("nice", "-n", "5", *self.command(model)),  # whoever watches the engine comes first
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self._environment(),
                start_new_session=True,
            )
        try:
            self._await_health(self._process)
        except BaseException:
            self.stop()
            raise

    def command(self, model: Path) -> Sequence[str]:
        """What is run to serve the model in that folder."""
        host, port = self.address.split(":")
        return (
            *(str(installation.vllm()), "serve", str(model), "--served-model-name", MODEL),
            *("--host", host, "--port", port, "--load-format", "dummy"),
            *("--max-model-len", str(tiny_model.CONTEXT), "--max-num-seqs", str(SLOTS), "--enforce-eager"),
            *("--gpu-memory-utilization", "0.3"),  # on the CPU it is a share of the memory that must be free at start
            *self._options,
        )

    def stop(self) -> None:
        """End every process of the engine, SIGTERM first, and remove its files."""
        if self._process is not None:
            group = self._process.pid
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, number)
                if _ends(self._process, group):
                    break
            self._process = None
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End the server's process by SIGKILL, as the kernel does when memory runs out."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def page(self, path_and_query: str = "/metrics") -> bytes:
        """What the server answers. Raises OSError where it does not."""
        with urllib.request.urlopen(self.url + path_and_query, timeout=30) as answer:
            return bytes(answer.read())

    def log_tail(self) -> str:
        """The last lines of what the engine has said."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_LINES_TOLD:])

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _environment(self) -> dict[str, str]:
        """The user's, without settings of vLLM and Python; and the engine's caches go to its own folder."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "PYTHON"))}
        places = {"HF_HOME": "hf", "VLLM_CACHE_ROOT": "cache", "VLLM_CONFIG_ROOT": "config", "TMPDIR": ""}
        ours = {name: str(self.folder / place) for name, place in places.items()}
        return kept | _ENVIRONMENT | ours | self._settings

    def _await_health(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_S
        while not self._is_healthy():
            if process.poll() is not None:
                raise EngineError(f"vllm ended with status {process.returncode} before it served:\n{self.log_tail()}")
            if time.monotonic() > end:
                raise EngineError(f"vllm does not serve after {START_S:g} s:\n{self.log_tail()}")
            time.sleep(0.2)

    def _is_healthy(self) -> bool:
        try:
            self.page("/health")
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _ends(process: subprocess.Popen[bytes], group: int) -> bool:
    """Whether all processes of the group are gone in time."""
    end = time.monotonic() + _STOP_S
    while process.poll() is None or any(True for _ in _members(group)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _members(group: int) -> Iterable[int]:
    """Processes of the group that still run; those that nobody has waited for do not."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, its_group = entry.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                yield int(entry.parent.name)
