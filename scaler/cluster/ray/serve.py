"""Ray Serve's external scaling API: a deployment's target and where its replicas run.

https://docs.ray.io/en/latest/serve/advanced-guides/advanced-autoscaling.html. Beyond what stands there, Ray 2.60 takes
the target back to the configuration when the application changes, so it is compared and sent again at every look; it
has no upper limit, so the caller keeps one; and its status says HEALTHY all along, so replicas are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from scaler.cluster.errors import one_line
from scaler.cluster.ray.model import BridgeError, RayObject, ServeRef

_TIMEOUT_S = 5.0
_RUNNING = "RUNNING"
_ON_THE_WAY_OUT = frozenset({"STOPPING", "STOPPED"})


@dataclass(frozen=True, slots=True)
class ServeState:
    """A deployment as the Serve controller sees it."""

    target: int
    replicas: int
    """Without those on their way out."""
    running: int
    pods: frozenset[str]
    """Those that Serve still needs: a replica is on them, or a proxy, both until they have finished their requests."""


class ServeApi:
    """Speaks to the heads of Ray clusters. `token_file` is read at every call, for it may be replaced."""

    def __init__(self, token_file: Path | None = None) -> None:
        self._token_file = token_file
        self._http = httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False)

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    async def look(self, cluster: RayObject, serve: ServeRef) -> ServeState:
        """Return what is there of a deployment. Raises BridgeError."""
        return _state(await self._ask("GET", cluster, "/api/serve/applications/"), cluster, serve)

    async def scale(self, cluster: RayObject, serve: ServeRef, count: int) -> None:
        """Set a deployment's target, which may be the one that it has. Raises BridgeError."""
        path = f"/api/v1/applications/{serve.application}/deployments/{serve.deployment}/scale"
        await self._ask("POST", cluster, path, {"target_num_replicas": count})

    async def _ask(self, method: str, cluster: RayObject, path: str, body: Any = None) -> Any:
        if not cluster.head:
            raise BridgeError("ServeUnreachable", f"{cluster} has no head yet: see its status")
        url = f"http://{cluster.head}{path}"
        try:
            token = self._token_file.read_text(encoding="utf-8").strip() if self._token_file else ""
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = await self._http.request(method, url, json=body, headers=headers)
        except (httpx.HTTPError, OSError) as error:
            raise BridgeError("ServeUnreachable", f"{method} {url} of {cluster} failed: {one_line(error)}") from None
        if answer.is_success:
            return answer.json()
        said = " ".join(answer.text.split())[:300]
        reason, remedy = _REMEDIES.get(answer.status_code, ("ServeUnreachable", "it is tried again"))
        raise BridgeError(reason, f"{method} {url} of {cluster} says {answer.status_code} {said}: {remedy}")


_REMEDIES = {
    401: ("ServeTokenRefused", "start the scaler with --ray-token-file"),
    403: ("ServeTokenRefused", "the token of --ray-token-file is not the cluster's"),
    412: ("ExternalScalerDisabled", "set external_scaler_enabled: true in the application, and no autoscaling_config"),
}


def _state(found: Any, cluster: RayObject, serve: ServeRef) -> ServeState:
    applications = found.get("applications") or {}
    application = applications.get(serve.application)
    if application is None:
        known = ", ".join(applications) or "none"
        raise BridgeError("ApplicationNotFound", f"{cluster} has no application {serve.application}; it has {known}")
    deployments = application.get("deployments") or {}
    deployment = deployments.get(serve.deployment)
    if deployment is None:
        known = ", ".join(deployments) or "none yet"
        raise BridgeError(
            "DeploymentNotFound",
            f"application {serve.application} of {cluster} has no deployment {serve.deployment}; it has {known}",
        )
    replicas = deployment.get("replicas") or ()
    states = [replica["state"] for replica in replicas]
    # Serve keeps a proxy wherever a replica is, and drains it for 30 s after the last one.
    actors = (*replicas, *(found.get("proxies") or {}).values())
    return ServeState(
        target=deployment["target_num_replicas"],
        replicas=sum(state not in _ON_THE_WAY_OUT for state in states),
        running=states.count(_RUNNING),
        # KubeRay gives Ray the pod's name as the node's instance; it is absent until the replica is placed.
        pods=frozenset(actor["node_instance_id"] for actor in actors if actor.get("node_instance_id")),
    )
