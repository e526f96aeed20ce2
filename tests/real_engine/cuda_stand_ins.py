"""Stand-ins for the CUDA libraries that PyPI's torch is linked with, for machines that have no GPU.

Without a GPU torch calls none of them, but the dynamic linker must find each library, each symbol that torch asks
for and the version that the symbol carries. So every stand-in is compiled from torch's own list of undefined
symbols; a call to one returns 1, which all of these libraries mean as an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

Run = Callable[..., str]
"""Runs a command, raises when it fails, and returns what it printed."""


@dataclass(frozen=True, slots=True)
class _Library:
    """How a library's symbols are told from the others': by their version, or else by how their names begin."""

    name: str
    version: str = ""
    prefix: str = ""

    def owns(self, symbol: str, version: str) -> bool:
        return version == self.version and symbol.startswith(self.prefix)


_LIBRARIES = (
    *(
        _Library(name, version=name)
        for name in (
            "libcublas.so.13",
            "libcublasLt.so.13",
            "libcudnn.so.9",
            "libcufft.so.12",
            "libcupti.so.13",
            "libcusolver.so.12",
            "libcusparse.so.12",
            "libnvrtc.so.13",
        )
    ),
    _Library("libnvshmem_host.so.3", version="NVSHMEM"),
    _Library("libcufile.so.0", prefix="cuFile"),
    _Library("libcurand.so.10", prefix="curand"),
    _Library("libcusparseLt.so.0", prefix="cusparseLt"),
    _Library("libnccl.so.2", prefix="nccl"),
)


def build(torch_lib: Path, workshop: Path, run: Run) -> None:
    """Put all stand-ins beside torch's own libraries, where torch looks first."""
    listing = run("nm", "-D", "--undefined-only", *(str(path) for path in sorted(torch_lib.glob("libtorch*.so"))))
    wanted = sorted(set(_undefined(listing.splitlines())))
    for library in _LIBRARIES:
        source, versions = workshop / f"{library.name}.c", workshop / f"{library.name}.map"
        source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name, v in wanted if library.owns(name, v)))
        options = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{library.name}"]
        if library.version:
            versions.write_text(f"{library.version} {{ global: *; }};\n")
            options.append(f"-Wl,--version-script={versions}")
        run("gcc", *options, "-o", str(torch_lib / library.name), str(source))


def _undefined(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Lines of nm, `U name@version` or `U name` → (name, version), the version empty where there is none."""
    for line in lines:
        kind, _, symbol = line.strip().partition(" ")
        if kind == "U":
            name, _, version = symbol.partition("@")
            yield name, version
