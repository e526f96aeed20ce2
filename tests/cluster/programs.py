"""Programs that a test runs beside itself: each with a log, watched while waited for, never left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

GRACE_S = 2.0
"""From SIGTERM to SIGKILL, in seconds: kube-apiserver would wait a minute for its watches."""

_NETWORK_PORT = 10250  # the kubelet's, which no pod has
_T = TypeVar("_T")


class ProgramError(Exception):
    """A program could not be started or ended by itself; the text then ends with its last log lines."""


@dataclass(slots=True)
class Program:
    """One process with its log file. It dies with the thread that started it, even when that is killed."""

    name: str
    command: Sequence[str | Path]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Raises ProgramError where the file is missing or cannot be run."""
        if shutil.which(self.command[0]) is None:
            raise ProgramError(f"{self.name} cannot be started: there is no program {self.command[0]}")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | self.environment,
                cwd=self.log.parent,
                start_new_session=True,  # Ctrl-C goes to the test, which then stops its programs
            )

    @property
    def pid(self) -> int | None:
        """The process id while the program runs."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process else None

    def check(self) -> None:
        """Raises ProgramError where the program has ended by itself."""
        if self._process is not None and (status := self._process.poll()) is not None:
            raise ProgramError(f"{self.name} ended with status {status}:\n{self.tail()}")

    def terminate(self) -> None:
        """Sends SIGTERM."""
        if self.pid is not None:
            os.killpg(self.pid, signal.SIGTERM)

    def finish(self, deadline: float) -> None:
        """Waits until the process is gone; at the deadline (time.monotonic) it gets SIGKILL."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that was not enough."""
        stop_all([self])

    def tail(self, lines: int = 15) -> str:
        """The last lines of the log, under its path."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join([f"--- {self.log}", *text.splitlines()[-lines:]])


def stop_all(programs: Iterable[Program]) -> None:
    """Stops programs, all within one period of grace."""
    chosen = list(programs)
    for program in chosen:
        program.terminate()
    deadline = time.monotonic() + GRACE_S
    for program in chosen:
        program.finish(deadline)


def wait_for(
    what: str, condition: Callable[[], _T | None], *, timeout_s: float, programs: Iterable[Program] = ()
) -> _T:
    """The first true value of ``condition``, which is asked ten times a second.

    Raises ProgramError at once where one of the programs has ended, TimeoutError after ``timeout_s`` seconds.
    """
    watched = list(programs)
    deadline = time.monotonic() + timeout_s
    while True:
        if value := condition():
            return value
        for program in watched:
            program.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.1)


class Ports:
    """TCP ports kept for programs to come.

    Each is bound here but not listened on, with SO_REUSEADDR: the kernel gives it to nobody else, yet a
    server that sets SO_REUSEADDR too (as every Go program does) can listen on it, again after a restart too.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self, owner: str, port: int = 0, address: str = "127.0.0.1") -> int:
        """A port for ``owner``, any free one unless given. Raises ProgramError where that is in use."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind((address, port))
        except OSError as error:
            held.close()
            raise ProgramError(f"port {port} for {owner} cannot be had: {error.strerror}") from None
        self._sockets.append(held)
        number: int = held.getsockname()[1]
        return number

    def reserve_network(self) -> str:
        """A network 127.x.0.0/16 that no other holder of a reservation on this machine has.

        Held by one bound port of its last address. Raises ProgramError where all of them are taken.
        """
        for x in range(1, 255):
            held = socket.socket()
            try:
                held.bind((f"127.{x}.255.254", _NETWORK_PORT))
            except OSError:
                held.close()
                continue
            self._sockets.append(held)
            return f"127.{x}.0.0/16"
        raise ProgramError("every network 127.x.0.0/16 is taken by another cluster on this machine")

    def release(self) -> None:
        """Gives every port back."""
        while self._sockets:
            self._sockets.pop().close()
