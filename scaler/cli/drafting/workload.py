"""What can be scaled: the kinds with /scale, what each needs beside its ScaledObject, and the way out of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaler.cli.linting.manifests import Manifest
from scaler.cluster.resources import DEPLOYMENTS, RAY_WORKER_GROUPS, STATEFUL_SETS, Resource
from scaler.quoting import one_line, quoted

LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")
INFERENCE_SERVICES = Resource("serving.kserve.io", "v1beta1", "inferenceservices")

_KSERVE = "serving.kserve.io"
_STANDARD = ("Standard", "RawDeployment")
"""KServe's mode of plain Deployments, and its older name."""

_NO_REPLICAS = (
    "Leave replicas out of the manifest that you apply: every apply would put the count back to that number, under "
    "load or not."
)


class Refused(ValueError):
    """What was given cannot be drafted for; the message says why and what would be right."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that `init` knows."""

    name: str
    resource: Resource
    words: tuple[str, ...]
    """What kubectl calls it, in small letters."""

    @property
    def group(self) -> str:
        """Its API group."""
        return self.resource.group


KINDS = (
    Kind("Deployment", DEPLOYMENTS, ("deployment", "deployments", "deploy")),
    Kind("StatefulSet", STATEFUL_SETS, ("statefulset", "statefulsets", "sts")),
    Kind("LeaderWorkerSet", LEADER_WORKER_SETS, ("leaderworkerset", "leaderworkersets", "lws")),
    Kind("RayWorkerGroup", RAY_WORKER_GROUPS, ("rayworkergroup", "rayworkergroups", "rwg")),
    Kind("InferenceService", INFERENCE_SERVICES, ("inferenceservice", "inferenceservices", "isvc")),
)

_RAY = (
    "right is a RayWorkerGroup that names it (docs/ray.md), and vllm-scaler init rayworkergroup/NAME for that; "
    "k8s/examples/ray has all three"
)
_OWNED = "right is the Deployment or StatefulSet that makes it"
_WAYS_OUT = {
    "raycluster": ("RayCluster", _RAY),
    "rayservice": ("RayService", _RAY),
    "rayjob": (
        "RayJob",
        "a job ends by itself; what serves is a RayCluster or RayService, and a RayWorkerGroup scales it",
    ),
    "daemonset": ("DaemonSet", "it has one pod on each node; right is a Deployment"),
    "job": ("Job", "a job ends by itself; right is a Deployment"),
    "pod": ("Pod", _OWNED),
    "replicaset": ("ReplicaSet", "a Deployment sets its count; right is the Deployment"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A workload, and what is known of it that a ScaledObject depends on."""

    namespace: str
    """Empty where a file leaves it to kubectl."""
    api_version: str
    kind: str
    name: str
    """What `scaleTargetRef` says."""
    replicas: int | None = None
    """What it has or asks for now."""
    minimum: int | None = None
    maximum: int | None = None
    """The limits that the workload itself names."""
    selector: Mapping[str, Any] | None = None
    """The LabelSelector of its pods, for a PodDisruptionBudget; None where that does harm, or is not known."""
    to_do: tuple[str, ...] = ()
    """What must be so beside the ScaledObject."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def kind_of(word: str) -> Kind:
    """Find a kind by a name that kubectl knows, a plural or `KIND.GROUP` included. Raises Refused."""
    first = word.lower().partition(".")[0]
    for kind in KINDS:
        if first in kind.words:
            return kind
    for known, (name, way_out) in _WAYS_OUT.items():
        if first in (known, known + "s"):
            raise Refused(f"a {name} cannot be scaled (it has no count of its own that KEDA could set): {way_out}")
    raise Refused(f"{quoted(word)} is no kind that is known here; known are {', '.join(k.words[0] for k in KINDS)}")


def chosen(manifests: Iterable[Manifest], kind: Kind | None, name: str, namespace: str) -> Manifest:
    """Pick the workload from what files hold; `kind` None stands for any, if there is but one. Raises Refused."""
    there = [each for each in manifests if not namespace or each.text("metadata", "namespace") in ("", namespace)]
    known = [each for each in there if _known(each) is not None]
    wanted = known if kind is None else [each for each in known if (_known(each), each.name) == (kind, name)]
    if len(wanted) == 1:
        return wanted[0]
    if len(wanted) > 1:
        raise Refused(f"there are {len(wanted)} workloads, say which one: {_list(wanted)}; --namespace may help too")
    if kind is not None and known:
        raise Refused(f"there is no {kind.words[0]}/{one_line(name)} in the file; there is {_list(known)}")
    for each in there:  # a kind with a way out says so
        if each.kind.lower() in _WAYS_OUT:
            kind_of(each.kind)
    kinds = ", ".join(sorted({one_line(each.kind) for each in there if each.kind})) or "no object"
    place = f" in namespace {one_line(namespace)}" if namespace else ""
    raise Refused(f"there is no workload{place} in the file, but {kinds}; right is one of {_names()}")


def target_of(manifest: Manifest) -> Target:
    """Read a workload of one of KINDS. Raises Refused."""
    if (kind := _known(manifest)) is None:
        raise Refused(f"{one_line(manifest.kind)} ({one_line(manifest.text('apiVersion'))}) is none of {_names()}")
    if not manifest.name:
        raise Refused(f"the {kind.name} has no metadata.name")
    _refuse_owned(manifest)
    replicas = manifest.get("spec", "replicas")
    plain = Target(
        manifest.text("metadata", "namespace"),
        manifest.text("apiVersion"),
        kind.name,
        manifest.name,
        replicas=replicas if isinstance(replicas, int) else None,
        to_do=() if replicas is None else (_NO_REPLICAS,),
    )
    match kind.name:
        case "LeaderWorkerSet":
            labels = {"leaderworkerset.sigs.k8s.io/name": manifest.name}
            right = (
                "The scaler needs the right to see LeaderWorkerSets: helm upgrade … --set "
                f"extraScaleTargets[0].apiGroup={kind.group} --set extraScaleTargets[0].resource={kind.resource.plural}"
            )
            return replace(plain, selector={"matchLabels": labels}, to_do=(*plain.to_do, right))
        case "RayWorkerGroup":
            right = "The scaler must carry the count to Ray: helm upgrade … --set ray.enabled=true"
            return replace(plain, to_do=(*plain.to_do, right))
        case "InferenceService":
            return _predictor(manifest)
        case _:
            selector = manifest.get("spec", "selector")
            return replace(plain, selector=selector if isinstance(selector, Mapping) else None)


def _predictor(service: Manifest) -> Target:
    """Return the Deployment that KServe makes of an InferenceService. Raises Refused where it makes none."""
    called = f"InferenceService {one_line(service.name)}"
    annotations = ("metadata", "annotations")
    mode = service.text("status", "deploymentMode") or service.text(*annotations, f"{_KSERVE}/deploymentMode")
    if mode and mode not in _STANDARD:
        raise Refused(
            f"{called} is in KServe's mode {quoted(mode)}, in which its own autoscaler sets the count; right is a "
            f"service with the annotation {_KSERVE}/deploymentMode: Standard (KServe before 0.16: RawDeployment)"
        )
    if service.get("spec", "predictor", "workerSpec") is not None:
        raise Refused(
            f"{called} spans several nodes (workerSpec): its head and its workers are separate Deployments, and "
            "scaling one breaks the group; right is a LeaderWorkerSet"
        )
    to_do = []
    if not mode:
        to_do.append(
            f"KServe must make a Deployment of it: the annotation {_KSERVE}/deploymentMode: Standard (before 0.16: "
            "RawDeployment), unless that is the installation's default."
        )
    if service.text(*annotations, f"{_KSERVE}/autoscalerClass") != "external":
        to_do.append(
            f"KServe must leave the count alone, else its own HPA is in the way and KEDA refuses: kubectl annotate "
            f"inferenceservice {service.name} {_KSERVE}/autoscalerClass=external --overwrite"
        )
    limits = [service.get("spec", "predictor", key) for key in ("minReplicas", "maxReplicas")]
    minimum, maximum = (value if isinstance(value, int) and value > 0 else None for value in limits)
    deployment = f"{service.name}-predictor"
    return Target(
        service.text("metadata", "namespace"),
        "apps/v1",
        "Deployment",
        deployment,
        minimum=minimum,
        maximum=maximum,
        selector={"matchLabels": {"app": f"isvc.{deployment}"}},
        to_do=tuple(to_do),
    )


def _refuse_owned(manifest: Manifest) -> None:
    """A workload that another one makes gets its count from that one."""
    for index in range(len(manifest.items("metadata", "ownerReferences"))):
        owner = ("metadata", "ownerReferences", index)
        for kind in KINDS:
            if manifest.get(*owner, "kind") == kind.name and manifest.get(*owner, "controller") is True:
                whose = f"{kind.words[0]}/{one_line(manifest.text(*owner, 'name'))}"
                raise Refused(
                    f"{manifest.kind} {one_line(manifest.name)} is made by {whose}, which would set its count back; "
                    f"right is vllm-scaler init {whose}"
                )


def _known(manifest: Manifest) -> Kind | None:
    return next((kind for kind in KINDS if (kind.group, kind.name) == (manifest.group, manifest.kind)), None)


def _names() -> str:
    return ", ".join(kind.name for kind in KINDS)


def _list(manifests: Iterable[Manifest]) -> str:
    return ", ".join(f"{one_line(each.kind.lower())}/{one_line(each.name)}" for each in list(manifests)[:10])
