"""From a kind, as a ScaledObject names it, to the resource that the API serves, which must have `/scale`."""

from __future__ import annotations

from scaler.cluster.client import ApiClient
from scaler.cluster.errors import NOT_FOUND, ApiError
from scaler.cluster.model import DiscoveryError
from scaler.cluster.resources import Resource, group_path, split_api_version


async def find_scalable(client: ApiClient, api_version: str, kind: str) -> Resource:
    """Ask the API server which resource a kind is. Raises DiscoveryError, or ApiError when it cannot be asked."""
    group, version = split_api_version(api_version)
    try:
        listed = (await client.read(group_path(group, version)))["resources"]
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        raise DiscoveryError(
            f"the cluster has no API {api_version}, which scaleTargetRef names for its {kind}: install its "
            "CustomResourceDefinition or correct apiVersion"
        ) from None
    names = {resource["name"] for resource in listed}
    plural = next((r["name"] for r in listed if r["kind"] == kind and "/" not in r["name"]), None)
    if plural is None:
        known = ", ".join(sorted({r["kind"] for r in listed if "/" not in r["name"]}))
        raise DiscoveryError(f"{api_version} has no kind {kind}, which scaleTargetRef names; it has {known}")
    if f"{plural}/scale" not in names:
        why, way = "its CustomResourceDefinition declares none", ""
        if group == "ray.io":
            why, way = "KubeRay gives its resources none", "; point the ScaledObject at a RayWorkerGroup"
        raise DiscoveryError(
            f"{kind} ({api_version}) has no /scale subresource, {why}: neither KEDA nor the HPA can scale it{way}"
        )
    return Resource(group, version, plural)
