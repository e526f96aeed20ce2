"""What a model is before it is on stage: a workload, its users and its ScaledObject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference.simulated import TIME_BOUND, Profile
from tests.cluster.control_plane import Manifest
from tests.cluster.workload_objects import GROUP_KIND
from tests.cluster.workloads import deployment

POLICIES: Mapping[str, Mapping[str, str]] = {
    "plain": {
        "targetOngoingRequests": "1",
        "lookAhead": "0",
        "upscaleDelay": "2s",  # longer than a request that moves to another pod can be seen on both
        "downscaleDelay": "3s",  # … or on none
        "staleness": "4s",
    }
}
"""The policy of every model unless it says otherwise: a replica for each user, soon."""

PATHS: Mapping[str, str] = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "ModelGroup": "/apis/test.example.com/v1/namespaces/{}/modelgroups",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A model that is to be."""

    name: str
    replicas: int
    users: int
    kind: str = "Deployment"
    """StatefulSet, or ModelGroup: a kind of our own, whose pods and status are up to the test."""
    startup: str = "0s"
    drain: str = "0s"
    profile: Profile = TIME_BOUND
    tolerance: str | None = "0"
    """Of the HPA, both ways; None leaves Kubernetes' tenth."""
    minimum: int = 1
    polling_s: int = 1
    """How often KEDA asks by itself; with an hour it hears of activity by its stream alone."""
    cooldown_s: int = 5
    """After so long without activity KEDA goes to zero, where the minimum lets it."""
    triggers: tuple[Mapping[str, str], ...] = ({},)
    """The metadata of each, beyond the policy `plain`."""
    placement: Manifest = field(default_factory=dict)
    """What its pods' spec says about nodes."""
    begins_ready: bool = True
    """Whether the ScaledObject comes only once all pods are ready and the users have their requests in them."""

    def workload(self) -> Manifest:
        """What is to be scaled."""
        if self.kind == "ModelGroup":
            return {**GROUP_KIND, "metadata": {"name": self.name}, "spec": {"replicas": self.replicas}}
        made = deployment(
            self.name, replicas=self.replicas, startup=self.startup, drain=self.drain, placement=self.placement
        )
        if self.kind == "StatefulSet":
            made = {**made, "kind": self.kind, "spec": {**made["spec"], "podManagementPolicy": "Parallel"}}
        return made

    def scaled_object(self, address: str) -> Manifest:
        """The HPA may move by any number at once; KEDA goes to zero after the cool-down."""
        rules: dict[str, object] = {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": 1000, "periodSeconds": 15}],
        }
        if self.tolerance is not None:
            rules["tolerance"] = self.tolerance
        version = GROUP_KIND["apiVersion"] if self.kind == "ModelGroup" else "apps/v1"
        spec = {
            "scaleTargetRef": {"apiVersion": version, "kind": self.kind, "name": self.name},
            "minReplicaCount": self.minimum,
            "maxReplicaCount": 100,
            "pollingInterval": self.polling_s,
            "cooldownPeriod": self.cooldown_s,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": rules, "scaleDown": rules}}},
            "triggers": [
                {"type": "external-push", "metadata": {"scalerAddress": address, "policy": "plain", **metadata}}
                for metadata in self.triggers
            ],
        }
        metadata = {"name": self.name}
        return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec}
