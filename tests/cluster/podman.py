"""Podman for tests: a base image made on this machine, images built on it, and its Docker API for testcontainers.

The flags suit root in a sandbox: no cgroup manager, no user namespace for the build, the host's network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.programs import wait_for

BASE = "localhost/vllm-scaler-test-base:bookworm"
"""Debian with Python, as the Dockerfile wants it. Made once and kept."""

LIMITS = 1024
"""Open files and processes of a container: a sandbox may not let it have what podman would ask for."""

_PODMAN = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs")
_HOST_FILES = ("/etc/ssl/certs", "/etc/pip.conf")
"""How this machine reaches package indexes; mounted while an image is built, and not part of it."""


def missing() -> str | None:
    """Why no image can be built here, None where it can."""
    lacking = [program for program in ("podman", "runc", "debootstrap") if shutil.which(program) is None]
    if lacking:
        return f"images need {', '.join(lacking)}: apt-get install --no-install-recommends podman runc debootstrap"
    if os.geteuid() != 0:
        return "images need root: debootstrap makes their base"
    return None


def podman(*arguments: str, timeout_s: float = 60.0) -> str:
    """What podman prints. Raises RuntimeError with what it said on failure."""
    done = subprocess.run([*_PODMAN, *arguments], capture_output=True, text=True, check=False, timeout=timeout_s)
    if done.returncode:
        raise RuntimeError(f"podman {' '.join(arguments)}: {done.stderr.strip()[-4000:]}")
    return done.stdout.strip()


def build(folder: Path, tag: str) -> None:
    """Build the Dockerfile of a folder. Raises RuntimeError."""
    _need_base()
    mounts = [f"--volume={file}:{file}:ro" for file in _HOST_FILES if Path(file).exists()]
    options = ("--isolation=chroot", "--network=host", "--layers=false", f"--build-arg=BASE={BASE}", *mounts)
    podman("build", *options, "--tag", tag, str(folder), timeout_s=600)


@contextmanager
def docker_api() -> Iterator[str]:
    """Podman's Docker API, as a value for DOCKER_HOST."""
    with tempfile.TemporaryDirectory(prefix="vllm-scaler-podman-") as folder:
        socket = Path(folder) / "docker.sock"
        service = subprocess.Popen([*_PODMAN, "system", "service", "--time=0", f"unix://{socket}"])
        try:
            wait_for("podman's Docker API", socket.exists, timeout_s=60)
            yield f"unix://{socket}"
        finally:
            service.terminate()
            service.wait(timeout=30)


def _need_base() -> None:
    exists = subprocess.run([*_PODMAN, "image", "exists", BASE], check=False, timeout=60).returncode == 0
    if exists:
        return
    with tempfile.TemporaryDirectory(prefix="vllm-scaler-base-") as folder:
        root, archive = Path(folder) / "root", Path(folder) / "root.tar"
        include = "--include=python3,python3-venv,ca-certificates"
        for command in (
            ["debootstrap", "--variant=minbase", include, "bookworm", str(root)],
            ["tar", "--directory", str(root), "--create", "--file", str(archive), "."],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
            if done.returncode:
                raise RuntimeError(f"{command[0]}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        podman("import", str(archive), BASE, timeout_s=300)
