"""The pods that a scale target would make more of: from its pod template, or else from one of its pods."""

from __future__ import annotations

from collections.abc import Sequence

from scaler.cluster.client import ApiClient, Json
from scaler.cluster.kinds import find_scalable
from scaler.cluster.ray.model import KIND, TargetKind
from scaler.cluster.resources import PODS, RAY_CLUSTERS, RAY_SERVICES, RAY_WORKER_GROUPS
from scaler.cluster.scale import TargetRef, built_in
from scaler.cluster.warm.shape import Shape, WarmError, shape_of

_RESOURCES = {TargetKind.CLUSTER: RAY_CLUSTERS, TargetKind.SERVICE: RAY_SERVICES}


async def find_shape(client: ApiClient, ref: TargetRef, pods: Sequence[str]) -> Shape:
    """Return what one more replica of a target needs; `pods` are the names of those that it has.

    Raises WarmError, DiscoveryError or ApiError.
    """
    try:
        found = await _template(client, ref)
        if found is None:
            found = await _some_pod(client, ref, pods), 1
        return shape_of(*found)
    except WarmError as error:
        raise WarmError(f"no room can be made for {ref}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise WarmError(f"no room can be made for {ref}: its pod template cannot be read ({error!r})") from None


async def _template(client: ApiClient, ref: TargetRef) -> tuple[Json, int] | None:
    """Return the spec of a replica's pods and how many there are; None where there is no template of a known form."""
    if ref.kind == KIND:
        return await _worker_group(client, ref)
    resource = built_in(ref.api_version, ref.kind) or await find_scalable(client, ref.api_version, ref.kind)
    spec = (await client.get(resource, ref.namespace, ref.name))["spec"]
    if (group := spec.get("leaderWorkerTemplate")) is not None:
        return group["workerTemplate"]["spec"], group.get("size", 1)
    return (spec["template"]["spec"], 1) if "containers" in (spec.get("template") or {}).get("spec", {}) else None


async def _worker_group(client: ApiClient, ref: TargetRef) -> tuple[Json, int]:
    bridge = (await client.get(RAY_WORKER_GROUPS, ref.namespace, ref.name))["spec"]
    target, name = bridge["targetRef"], bridge["group"]
    kind = TargetKind(target["kind"])
    cluster = (await client.get(_RESOURCES[kind], ref.namespace, target["name"]))["spec"]
    if kind is TargetKind.SERVICE:
        cluster = cluster["rayClusterConfig"]
    for group in cluster.get("workerGroupSpecs") or ():
        if group["groupName"] == name:
            return group["template"]["spec"], group.get("numOfHosts", 1)
    raise WarmError(f"{kind} {target['name']} has no worker group {name}")


async def _some_pod(client: ApiClient, ref: TargetRef, pods: Sequence[str]) -> Json:
    if not pods:
        raise WarmError("it has no pod template (spec.template) and no pod to learn from yet")
    listed = await client.list(PODS, ref.namespace, fieldSelector=f"metadata.name={pods[-1]}")
    if not listed["items"]:
        raise WarmError(f"its pod {pods[-1]} is gone")
    spec: Json = listed["items"][0]["spec"]
    return spec
