"""The builder of the control plane's programs: what it builds, what it keeps, and what it says where it cannot."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster import toolchain
from tests.cluster.toolchain import PARTS, Part, ToolchainError

FAKE_GO = """#!/bin/sh
case "$1" in
  env) echo go{version} ;;
  build) echo built >> {folder}/builds; sleep 0.2
         while [ "$1" != -o ]; do shift; done; echo '#!/bin/sh' > "$2"; {then} ;;
esac
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def install_go(folder: Path, monkeypatch: pytest.MonkeyPatch, *, version: str = "1.26.8", then: str = "true") -> None:
    """A ``go`` that counts its builds, alone on the PATH with the few programs of the system that it needs."""
    programs = folder / "path"
    programs.mkdir()
    for name in ("sh", "nice", "sleep"):
        (programs / name).symlink_to(shutil.which(name) or name)
    go = programs / "go"
    go.write_text(FAKE_GO.format(version=version, folder=folder, then=then))
    go.chmod(go.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(programs))


def builds(folder: Path) -> int:
    counted = folder / "builds"
    return len(counted.read_text().splitlines()) if counted.exists() else 0


def test_program_is_built_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch)
    path = toolchain.binary("helm")
    assert path.is_relative_to(tmp_path / "cache" / "vllm-scaler" / "bin")
    assert path.parent.name.startswith(f"helm-{PARTS['helm'].version}-")
    assert toolchain.binary("helm") == path
    assert builds(tmp_path) == 1


def test_two_that_want_the_same_program_build_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch)
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(toolchain.binary, ["helm"] * 4))
    assert len(paths) == 1
    assert builds(tmp_path) == 1


def test_failed_build_leaves_no_program_and_tells_the_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_go(tmp_path, monkeypatch, then="echo working >&2; echo out of memory >&2; exit 1")
    with pytest.raises(ToolchainError, match=r"^go build of helm failed: out of memory$"):
        toolchain.binary("helm")
    assert list((tmp_path / "cache").rglob("helm")) == []


def test_built_program_needs_no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch)
    path = toolchain.binary("grpcurl")
    (tmp_path / "path" / "go").unlink()
    assert toolchain.binary("grpcurl") == path


def test_no_go_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = toolchain.missing()
    assert reason is not None
    assert re.fullmatch(r"Go 1\.26\.0 or newer is needed .* no `go` on the PATH: install it from \S+", reason)
    with pytest.raises(ToolchainError, match="no `go` on the PATH"):
        toolchain.binary("helm")


@pytest.mark.parametrize("version", ["1.22.3", "1.9", "1.25.12"])
def test_old_go_is_told_with_both_versions(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch, version=version)
    reason = toolchain.missing()
    assert reason is not None
    assert re.fullmatch(rf"Go 1\.26\.0 or newer is needed .* this is go{re.escape(version)}: install .*", reason)


@pytest.mark.parametrize("version", ["1.26.0", "1.26", "1.26.8", "1.27rc1", "2.0.1"])
def test_new_go_is_good(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch, version=version)
    assert toolchain.missing() is None


@pytest.mark.parametrize(
    ("part", "program", "message"),
    [
        ("tiller", None, "no part 'tiller': there are grpcurl, helm, "),
        ("kubernetes", "kubelet", "part 'kubernetes' has no program 'kubelet': it has kube-apiserver, "),
    ],
)
def test_unknown_name_is_told_with_the_known_ones(part: str, program: str | None, message: str) -> None:
    with pytest.raises(ToolchainError, match=f"^{message}"):
        toolchain.binary(part, program)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_every_program_of_a_part_is_a_tool_of_its_module(part: Part) -> None:
    module = (part.folder / "go.mod").read_text()
    for package in part.programs.values():
        assert re.search(rf"^(tool |\t){re.escape(package)}$", module, re.MULTILINE)
    assert f"{part.module} v{part.version}" in (part.folder / "go.sum").read_text()


@pytest.mark.parametrize(
    ("settings", "outcome"), [({}, "skipped"), ({"CI": ""}, "skipped"), ({"CI": "true"}, "failed|error")]
)
def test_test_of_the_control_plane_is_skipped_without_go_but_fails_in_ci(
    settings: dict[str, str], outcome: str, tmp_path: Path
) -> None:
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), **settings}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/cluster/test_keda.py"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    last = done.stdout.splitlines()[-1]
    assert re.search(rf"\b2 ({outcome})", last), done.stdout
    assert done.stdout.count("Go 1.26.0 or newer is needed") >= 1
