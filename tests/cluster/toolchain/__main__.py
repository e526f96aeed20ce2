"""``make toolchain``: builds or downloads what is not there of the named parts (of all of them unless named)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cluster import toolchain


def main(names: list[str]) -> int:
    """Exit status: 0 when every program of the named parts is there."""
    try:
        for name in names or toolchain.PARTS:
            _build(name)
    except toolchain.ToolchainError as error:
        print(error, file=sys.stderr)
        return 1
    _print_sizes()
    return 0


def _build(name: str) -> None:
    part = toolchain.PARTS.get(name)
    if part and not part.programs:
        print(f"{name}: {toolchain.module_dir(name)}", flush=True)
        return
    paths = [toolchain.binary(name, program) for program in (part.programs if part else [name])]
    print(f"{name}: {paths[0].parent}", flush=True)


def _print_sizes() -> None:
    """What the programs take, and what Go keeps that only further builds need."""
    print(f"{_size(toolchain.cache_dir())}: the programs")
    for variable, clean in (("GOMODCACHE", "go clean -modcache"), ("GOCACHE", "go clean -cache")):
        go = subprocess.run(["go", "env", variable], capture_output=True, text=True, check=True)
        print(f"{_size(Path(go.stdout.strip()))}: Go's cache, of use for further builds ({clean} empties it)")


def _size(folder: Path) -> str:
    done = subprocess.run(["du", "-sm", folder], capture_output=True, text=True, check=True)
    return f"{int(done.stdout.split()[0]) / 1000:.1f} GB in {folder}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
