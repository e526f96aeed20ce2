"""Examples whose engine or operator is not the usual one work on a cluster as they stand: pods are read and scaled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from tests.cluster.control_plane import Manifest
from tests.cluster.fleet import ClusterFleet
from tests.cluster.keda import KedaCluster
from tests.cluster.kserve import KServe
from tests.cluster.scaler_process import ScalerProcess

pytestmark = pytest.mark.toolchain

EXAMPLES = Path(__file__).parents[2] / "k8s" / "examples"
_SOON_S = 180.0
"""Several times what the HPA, which looks every 15 s, may take on a busy machine."""


@dataclass(frozen=True, slots=True)
class Played:
    """An example on a cluster whose pods are played."""

    cluster: KedaCluster
    namespace: str
    deployment: str
    fleet: ClusterFleet

    def found(self) -> Manifest:
        """The Deployment that is scaled; empty before there is one."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.deployment}"
        return self.cluster.get(path) or {}

    def replicas(self) -> int | None:
        """How many are asked for."""
        count: int | None = self.found().get("spec", {}).get("replicas")
        return count

    def goes_to(self, count: int) -> None:
        """Return once so many are asked for and there."""
        self.cluster.wait_for(f"{count} replicas", lambda: self.replicas() == count, timeout_s=_SOON_S)
        self.cluster.wait_for(f"{count} pods", lambda: len(self.fleet.pods()) == count, timeout_s=_SOON_S)


@pytest.fixture
def models(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[None]:
    """The claim called `models` that the examples' pods mount, and a volume for it."""
    name = f"models-{keda_namespace}"
    claim = {"name": "models", "namespace": keda_namespace}
    what = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    size = {"storage": "1Ti"}
    volume = {**what, "capacity": size, "hostPath": {"path": "/models"}, "claimRef": claim}
    keda_cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": claim,
            "spec": {**what, "volumeName": name, "resources": {"requests": size}},
        },
        namespace=keda_namespace,
    )
    yield
    keda_cluster.kubectl("delete", "pv", name, "--wait=false")


def manifests(file: str, namespace: str, scaler: str) -> list[dict[str, Any]]:
    """The example's objects in another namespace, with a policy that is quick and a count that is known beforehand."""
    objects = list(yaml.safe_load_all((EXAMPLES / file).read_text()))
    for each in objects:
        each["metadata"]["namespace"] = namespace
        if each["kind"] == "ScaledObject":
            (trigger,) = each["spec"]["triggers"]
            trigger["metadata"] = {"scalerAddress": scaler, "policy": "plain"}
    return objects


@contextmanager
def played(
    cluster: KedaCluster, objects: list[dict[str, Any]], *, dialect: Literal["vllm", "sglang"] = "vllm", port: int
) -> Iterator[Played]:
    """The objects on the cluster; the pods are known by the example's PodDisruptionBudget."""
    (budget,) = (each for each in objects if each["kind"] == "PodDisruptionBudget")
    (scaled_object,) = (each for each in objects if each["kind"] == "ScaledObject")
    namespace = scaled_object["metadata"]["namespace"]
    selector = ",".join(f"{key}={value}" for key, value in budget["spec"]["selector"]["matchLabels"].items())
    with ClusterFleet(cluster, selector, namespace=namespace, dialect=dialect, port=port) as fleet:
        cluster.apply(*objects, namespace=namespace)
        example = Played(cluster, namespace, scaled_object["spec"]["scaleTargetRef"]["name"], fleet)
        example.goes_to(1)
        yield example


@pytest.mark.usefixtures("models")
def test_sglang_is_known_by_its_page_and_scaled(
    keda_cluster: KedaCluster, keda_namespace: str, scaler_process: ScalerProcess
) -> None:
    objects = manifests("sglang.yaml", keda_namespace, scaler_process.address)
    with played(keda_cluster, objects, dialect="sglang", port=30000) as example:
        example.fleet.send(3)
        example.goes_to(3)
        example.fleet.hang_up()
        example.goes_to(1)


@pytest.mark.usefixtures("models")
def test_kserve_leaves_the_count_of_its_deployment_to_the_scaler(
    keda_cluster: KedaCluster, keda_namespace: str, scaler_process: ScalerProcess
) -> None:
    objects = manifests("kserve.yaml", keda_namespace, scaler_process.address)
    with KServe(keda_cluster), played(keda_cluster, objects, port=8000) as example:
        example.fleet.send(3)
        example.goes_to(3)

        service, *_ = objects
        service["spec"]["predictor"]["deploymentStrategy"]["rollingUpdate"]["maxSurge"] = 2
        keda_cluster.apply(service, namespace=keda_namespace)
        keda_cluster.wait_for(
            "what KServe makes of a changed service",
            lambda: example.found()["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 2,
        )
        assert example.replicas() == 3

        example.fleet.hang_up()
        example.goes_to(1)
