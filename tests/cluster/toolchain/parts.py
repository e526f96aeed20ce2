"""The table of programs that tests of a real control plane run, each built from its published Go module.

A part is one Go module with a folder of its name beside this file. The folder's ``go.mod`` pins the version
(and, with ``go.sum``, everything it is built from); its ``tool`` lines name the packages below. A part without
programs is of use for its files. A further part is one more folder and one more entry here; an older version of
one is an entry that differs in its name.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Part:
    """One Go module, the programs built from it (name → Go package) and the strings stamped into them.

    A stamp is a ``-X`` linker flag's value; {version}, {major} and {minor} in it stand for the module's.
    """

    name: str
    module: str
    programs: Mapping[str, str]
    stamps: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the part's go.mod and go.sum are."""
        return HERE / self.name

    @property
    def version(self) -> str:
        """The module's version as go.mod pins it, without the leading v."""
        return _read(self.folder / "go.mod", rf"^\s*(?:require )?{re.escape(self.module)} v(\S+)")

    @property
    def go_version(self) -> str:
        """The oldest Go that builds the part: the go line of go.mod."""
        return _read(self.folder / "go.mod", r"^go (\S+)")

    @property
    def linker_flags(self) -> str:
        """What ``go build -ldflags`` gets: no debug information, and the stamps."""
        major, minor, *_ = self.version.split(".")
        stamps = (stamp.format(version=self.version, major=major, minor=minor) for stamp in self.stamps)
        return " ".join(["-s -w", *(f"-X {stamp}" for stamp in stamps)])

    @property
    def key(self) -> str:
        """Name of the cache folder; it changes with everything that the programs are built from."""
        files = sorted(file for file in self.folder.rglob("*") if file.is_file())
        content = b"".join(file.read_bytes() for file in files)
        digest = hashlib.sha256(content + self.linker_flags.encode()).hexdigest()[:12]
        return f"{self.name}-{self.version}-{digest}"


@functools.cache
def _read(file: Path, pattern: str) -> str:
    found = re.search(pattern, file.read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{file} has no line like {pattern!r}")
    return found[1]


_KUBERNETES_VERSION = "k8s.io/component-base/version"
_KUBERNETES = Part(
    name="kubernetes",
    module="k8s.io/kubernetes",
    programs={
        program: f"k8s.io/kubernetes/cmd/{program}"
        for program in ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
    },
    stamps=(
        f"{_KUBERNETES_VERSION}.gitVersion=v{{version}}",
        f"{_KUBERNETES_VERSION}.gitMajor={{major}}",
        f"{_KUBERNETES_VERSION}.gitMinor={{minor}}",
    ),
)
_KEDA = Part(
    name="keda",
    module="github.com/kedacore/keda/v2",
    programs={program: f"github.com/kedacore/keda/v2/cmd/{program}" for program in ("operator", "adapter", "webhooks")},
    stamps=("github.com/kedacore/keda/v2/version.Version={version}",),
)

PARTS: Mapping[str, Part] = {
    part.name: part
    for part in (
        Part(
            name="grpcurl",
            module="github.com/fullstorydev/grpcurl",
            programs={"grpcurl": "github.com/fullstorydev/grpcurl/cmd/grpcurl"},
            stamps=("main.version=v{version}",),
        ),
        Part(
            name="helm",
            module="helm.sh/helm/v4",
            programs={"helm": "helm.sh/helm/v4/cmd/helm"},
            stamps=("helm.sh/helm/v4/internal/version.version=v{version}",),
        ),
        Part(
            name="etcd",
            module="go.etcd.io/etcd/server/v3",
            programs={"etcd": "go.etcd.io/etcd/server/v3"},
        ),
        _KUBERNETES,
        replace(_KUBERNETES, name="kubernetes-1.34"),  # the oldest supported, as KEDA below
        Part(
            name="kwok",
            module="sigs.k8s.io/kwok",
            programs={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        ),
        _KEDA,
        replace(_KEDA, name="keda-2.18"),
        Part(
            name="prometheus",
            module="github.com/prometheus/prometheus",
            programs={
                program: f"github.com/prometheus/prometheus/cmd/{program}" for program in ("prometheus", "promtool")
            },
        ),
        Part(
            name="kuberay",
            module="github.com/ray-project/kuberay/ray-operator",
            programs={"kuberay": "github.com/ray-project/kuberay/ray-operator"},
        ),
        Part(
            name="kserve",
            module="github.com/kserve/kserve",
            programs={"kserve": "github.com/kserve/kserve/cmd/manager"},
        ),
        Part(name="lws", module="sigs.k8s.io/lws", programs={}),  # for its CustomResourceDefinitions
        Part(  # for the same
            name="prometheus-operator",
            module="github.com/prometheus-operator/prometheus-operator",
            programs={},
        ),
        Part(  # with its kwok provider: a real node autoscaler whose nodes are kwok's
            name="karpenter",
            module="sigs.k8s.io/karpenter",
            programs={"karpenter": "sigs.k8s.io/karpenter/kwok"},
        ),
    )
}
