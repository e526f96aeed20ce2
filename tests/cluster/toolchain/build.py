"""Builds the programs of the table once, keeps them in the user's cache folder, and says where they are.

The cache is ``$XDG_CACHE_HOME/vllm-scaler/bin`` (``~/.cache`` where that is unset), outside any checkout, so
that a second checkout or a second run builds nothing. A program appears there by a rename, whole or not at
all, and a lock keeps two processes from building the same part.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.toolchain.parts import PARTS, Part

OLDEST_GO = "1.26.0"
"""The oldest Go that builds most parts; a part that needs a newer one says so in its go.mod."""


class ToolchainError(Exception):
    """A program cannot be built; the text is one line: what is missing, or the compiler's last words."""


def cache_dir() -> Path:
    """The folder that holds the built programs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vllm-scaler" / "bin"


def missing() -> str | None:
    """Why nothing can be built here, in one line, or None where Go is there and new enough."""
    try:
        _require_go(OLDEST_GO)
    except ToolchainError as error:
        return str(error)
    return None


def binary(part: str, program: str | None = None) -> Path:
    """Path of a program, built first where the cache lacks it.

    ``program`` is the part's own name unless given: ``binary("helm")``, ``binary("kubernetes", "kubectl")``.
    Raises ToolchainError where it is neither in the cache nor can be built.
    """
    entry = _part(part)
    program = program or part
    if program not in entry.programs:
        raise ToolchainError(f"part {part!r} has no program {program!r}: it has {', '.join(entry.programs)}")
    target = cache_dir() / entry.key / program
    if not target.exists():
        _require_go(entry.go_version)
        with _lock(entry):
            if not target.exists():  # another process may have built it while this one waited
                _build(entry, program, target)
    return target


@functools.cache
def module_dir(part: str) -> Path:
    """Folder of the part's Go module (with its CRDs), downloaded where Go's module cache lacks it."""
    entry = _part(part)
    _require_go(entry.go_version)
    done = _go("mod", "download", "-json", f"{entry.module}@v{entry.version}", folder=entry.folder)
    return Path(json.loads(done)["Dir"])


def _part(name: str) -> Part:
    if name not in PARTS:
        raise ToolchainError(f"no part {name!r}: there are {', '.join(PARTS)}")
    return PARTS[name]


def _build(part: Part, program: str, target: Path) -> None:
    began = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as folder:
        made = Path(folder) / program
        package = part.programs[program]
        _go("build", "-ldflags", part.linker_flags, "-o", str(made), package, folder=part.folder)
        made.rename(target)
    size = target.stat().st_size / 1e6
    print(
        f"{part.name} {part.version}: {program} built in {time.monotonic() - began:.0f} s, {size:.0f} MB",
        flush=True,
    )


def _go(verb: str, *args: str, folder: Path) -> str:
    """Standard output of ``go VERB``, run niced in a module's folder, whatever the user's Go settings are."""
    settings = {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-trimpath -buildvcs=false" if verb == "build" else "",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    done = subprocess.run(
        ["nice", "-n", "10", "go", verb, *args],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise ToolchainError(f"go {verb} of {folder.name} failed: {' '.join(last)}")
    return done.stdout


def _require_go(oldest: str) -> None:
    needed = f"Go {oldest} or newer is needed to build the control plane"
    if shutil.which("go") is None:
        raise ToolchainError(f"{needed}, and there is no `go` on the PATH: install it from https://go.dev/dl")
    found = _go_version()
    if _numbers(found) < _numbers(oldest):
        raise ToolchainError(
            f"{needed}, and this is {found or 'of no known version'}: install a newer one from https://go.dev/dl"
        )


def _go_version() -> str:
    """What the ``go`` on the PATH calls itself, such as go1.26.8."""
    settings = os.environ | {"GOTOOLCHAIN": "local"}
    done = subprocess.run(
        ["go", "env", "GOVERSION"], env=settings, cwd="/", capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    """go1.26.8 → (1, 26, 8); 1.26 and a release candidate of it → (1, 26, 0)."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(number or 0) for number in found.groups()) if found else (0, 0, 0)


@contextmanager
def _lock(part: Part) -> Iterator[None]:
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / f".{part.key}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
