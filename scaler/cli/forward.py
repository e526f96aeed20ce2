"""The way to a scaler in a cluster: kubectl finds its Service by its label and forwards a port of this machine to it.

kubectl is asked, not the API server, so that contexts, logins and proxies are as its user knows them.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from scaler.quoting import quoted

LABEL = "app.kubernetes.io/name=vllm-scaler"
"""What the chart puts on its Service."""
FORWARD_S = 20.0
"""How long kubectl may take to have a port ready."""
RUNNING_S = 5.0
"""How long it may wait for a pod that runs."""
ANSWER_S = 10.0
"""How long the API server may take to answer kubectl."""
_REMEDY = "name it with --service NAMESPACE/NAME"


class NoWay(Exception):
    """The scaler cannot be reached; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Service:
    """A scaler's Service."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Service:
        """Read NAMESPACE/NAME. Raises ValueError."""
        namespace, slash, name = text.partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise ValueError(f"{quoted(text)} is no NAMESPACE/NAME, such as keda/vllm-scaler")
        return cls(namespace, name)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl, with the cluster that it is to ask."""

    context: str | None = None
    kubeconfig: Path | None = None

    def namespace(self) -> str:
        """The namespace of the context. Raises NoWay."""
        return (
            self._ask("config", "view", "--minify", "--output=jsonpath={.contexts[0].context.namespace}") or "default"
        )

    def scaler(self) -> Service:
        """The one scaler of the cluster. Raises NoWay where there is none or more than one."""
        found = self._ask("get", "services", "--all-namespaces", f"--selector={LABEL}", "--output=json")
        try:
            metadata = [each["metadata"] for each in json.loads(found)["items"]]
            names = [Service(each["namespace"], each["name"]) for each in metadata]
        except (ValueError, KeyError, TypeError):
            raise NoWay(f"kubectl answers {quoted(found.strip())}, which is no list of Services; {_REMEDY}") from None
        if len(names) == 1:
            return names[0]
        if names:
            raise NoWay(f"there are several scalers: {', '.join(map(str, names))}; {_REMEDY}")
        raise NoWay(f"no Service of the cluster has the label {LABEL}: is the scaler installed? If so, {_REMEDY}")

    @contextmanager
    def forward(self, service: Service) -> Iterator[str]:
        """Hold a port of this machine that leads to the Service's gRPC port; yields host:port. Raises NoWay."""
        what = (f"--namespace={service.namespace}", f"service/{service.name}", ":grpc")
        command = self._command("port-forward", *what, f"--pod-running-timeout={RUNNING_S:g}s")
        with _sigterm_unwinds(), _started(command) as child:
            giving_up = threading.Timer(FORWARD_S, child.kill)
            giving_up.start()
            try:
                port = re.match(r"Forwarding from (\S+:\d+)", child.stdout.readline()) if child.stdout else None
                giving_up.cancel()
                if port is None:
                    why = _last_words(child)
                    raise NoWay(f"kubectl cannot forward a port to {service}: {why}; is one of its pods running?")
                yield port[1]
            finally:
                giving_up.cancel()
                child.terminate()

    def _ask(self, *words: str) -> str:
        with _started(self._command(*words, f"--request-timeout={ANSWER_S:g}s")) as child:
            text, complaint = child.communicate()
        if child.returncode:
            why = _last_line(complaint) or f"it ends with status {child.returncode} and no word"
            raise NoWay(f"kubectl cannot tell where the scaler is: {why}; {_REMEDY}")
        return text

    def _command(self, *words: str) -> list[str]:
        chosen = {"context": self.context, "kubeconfig": self.kubeconfig}
        return ["kubectl", *(f"--{option}={value}" for option, value in chosen.items() if value), *words]


def _started(command: list[str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise NoWay(f"{command[0]} cannot be run: {error.strerror}; it is asked where the scaler is") from None


def _last_words(child: subprocess.Popen[str]) -> str:
    """Return why a program ended, or that it had to be ended."""
    _, complaint = child.communicate()
    return _last_line(complaint) or f"nothing came of it within {FORWARD_S:g} s"


def _last_line(complaint: str) -> str:
    """Return the end of what kubectl says, which is what it comes to."""
    return complaint.strip().rpartition("\n")[2]


@contextmanager
def _sigterm_unwinds() -> Iterator[None]:
    """Let SIGTERM leave `with` blocks, so that nothing started in them stays behind."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield
        return

    def end(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
