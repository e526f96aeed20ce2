"""KEDA on the cluster of tests: it asks an external scaler, and the HPA acts on the answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from scaler.serving.protocol import externalscaler_pb2 as pb
from tests.cluster.control_plane import Manifest
from tests.cluster.keda import KedaCluster
from tests.cluster.workloads import deployment

pytestmark = pytest.mark.toolchain

METRIC = "replicas"


@dataclass(slots=True)
class Wish:
    """An external scaler whose metric is the number of replicas it wishes for, each worth a target of one."""

    replicas: int

    def is_active(self, request: pb.ScaledObjectRef, context: grpc.ServicerContext) -> pb.IsActiveResponse:
        return pb.IsActiveResponse(result=self.replicas > 0)

    def metric_spec(self, request: pb.ScaledObjectRef, context: grpc.ServicerContext) -> pb.GetMetricSpecResponse:
        return pb.GetMetricSpecResponse(metricSpecs=[pb.MetricSpec(metricName=METRIC, targetSizeFloat=1.0)])

    def metrics(self, request: pb.GetMetricsRequest, context: grpc.ServicerContext) -> pb.GetMetricsResponse:
        value = pb.MetricValue(metricName=request.metricName, metricValueFloat=float(self.replicas))
        return pb.GetMetricsResponse(metricValues=[value])

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        unary = grpc.unary_unary_rpc_method_handler
        methods = {
            "IsActive": unary(self.is_active, pb.ScaledObjectRef.FromString, pb.IsActiveResponse.SerializeToString),
            "GetMetricSpec": unary(
                self.metric_spec, pb.ScaledObjectRef.FromString, pb.GetMetricSpecResponse.SerializeToString
            ),
            "GetMetrics": unary(self.metrics, pb.GetMetricsRequest.FromString, pb.GetMetricsResponse.SerializeToString),
        }
        return grpc.method_handlers_generic_handler("externalscaler.ExternalScaler", methods)


@pytest.fixture
def wish() -> Iterator[tuple[Wish, str]]:
    """The scaler and its address."""
    scaler = Wish(replicas=1)
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([scaler.handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield scaler, f"127.0.0.1:{port}"
    server.stop(grace=None).wait()


def scaled_object(target: str, address: str, **spec: object) -> Manifest:
    trigger = {"type": "external", "metadata": {"scalerAddress": address}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": target},
        "spec": {"scaleTargetRef": {"name": target}, "triggers": [trigger], "pollingInterval": 1, **spec},
    }


def replicas(cluster: KedaCluster, namespace: str, name: str) -> int | None:
    scale = cluster.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale")
    return None if scale is None else scale["spec"].get("replicas", 0)


def test_scaled_object_follows_its_external_scaler(
    keda_cluster: KedaCluster, keda_namespace: str, wish: tuple[Wish, str]
) -> None:
    scaler, address = wish
    keda_cluster.apply(deployment("vllm"), namespace=keda_namespace)
    keda_cluster.apply(scaled_object("vllm", address), namespace=keda_namespace)

    scaler.replicas = 3
    keda_cluster.wait_for("3 wanted", lambda: replicas(keda_cluster, keda_namespace, "vllm") == 3)
    keda_cluster.wait_for("3 ready", lambda: len(keda_cluster.ready_pods(keda_namespace)) == 3)


def test_webhook_refuses_a_second_scaled_object_for_the_same_target(
    keda_cluster: KedaCluster, keda_namespace: str, wish: tuple[Wish, str]
) -> None:
    _, address = wish
    keda_cluster.apply(deployment("vllm"), namespace=keda_namespace)
    first = scaled_object("vllm", address)
    second = {**first, "metadata": {"name": "second"}}
    keda_cluster.apply(first, namespace=keda_namespace)
    with pytest.raises(RuntimeError, match=r"the workload 'vllm' .* is already managed by"):
        keda_cluster.apply(second, namespace=keda_namespace)
