"""Names of the API's resources and the paths that lead to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object as the API names it: `apps`, `v1`, `deployments`. The core group is the empty string."""

    group: str
    version: str
    plural: str

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a collection, of one object, or of its subresource. No namespace means all of them."""
        place = f"namespaces/{namespace}" if namespace else ""
        parts = (group_path(self.group, self.version), place, self.plural, name, subresource)
        return "/".join(part for part in parts if part)

    def rule(self, verb: str, subresource: str = "") -> str:
        """Return the RBAC rule that allows `verb`, in one line of YAML."""
        plural = f"{self.plural}/{subresource}" if subresource else self.plural
        return f'{{apiGroups: ["{self.group}"], resources: ["{plural}"], verbs: ["{verb}"]}}'


def group_path(group: str, version: str) -> str:
    """Return the path under which a group's version lists its resources."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split `apps/v1` into group and version; `v1` is the core group's."""
    group, _, version = api_version.rpartition("/")
    return group, version


NODES = Resource("", "v1", "nodes")
PODS = Resource("", "v1", "pods")
POD_TEMPLATES = Resource("", "v1", "podtemplates")
DEPLOYMENTS = Resource("apps", "v1", "deployments")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets")
REPLICA_SETS = Resource("apps", "v1", "replicasets")
HPAS = Resource("autoscaling", "v2", "horizontalpodautoscalers")
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
EVENTS = Resource("events.k8s.io", "v1", "events")
CAPACITY_BUFFERS = Resource("autoscaling.x-k8s.io", "v1beta1", "capacitybuffers")
RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters")
RAY_SERVICES = Resource("ray.io", "v1", "rayservices")
RAY_WORKER_GROUPS = Resource("vllm-scaler.dev", "v1alpha1", "rayworkergroups")
