"""What KEDA, health checks and people ask a scaler over gRPC, as plain calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from scaler.serving.protocol import externalscaler_pb2 as pb
from scaler.serving.protocol import insight_pb2
from scaler.serving.protocol.externalscaler_pb2_grpc import ExternalScalerStub
from scaler.serving.protocol.insight_pb2_grpc import InsightStub

_CALL_S = 5.0


class Asking:
    """A client of the scaler at an address, as a context manager."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        self.address = address
        if credentials is None:
            self._channel = grpc.insecure_channel(address)
        else:
            self._channel = grpc.secure_channel(address, credentials)
        self._keda = ExternalScalerStub(self._channel)
        self._insight = InsightStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ask no more."""
        self._channel.close()

    def explain(self, namespace: str, name: str, trigger: str = "") -> insight_pb2.Explanation | None:
        """Its latest decision; None where it has none, or does not answer."""
        asked = insight_pb2.TargetRef(namespace=namespace, name=name, trigger=trigger)
        try:
            return self._insight.Explain(asked, timeout=_CALL_S, wait_for_ready=True)
        except grpc.RpcError:
            return None

    def value(self, namespace: str, name: str, metadata: Mapping[str, str]) -> float:
        """The metric's value. Raises grpc.RpcError where it has none to give."""
        target = pb.ScaledObjectRef(namespace=namespace, name=name, scalerMetadata=metadata)
        (spec,) = self._keda.GetMetricSpec(target, timeout=_CALL_S).metricSpecs
        wanted = pb.GetMetricsRequest(scaledObjectRef=target, metricName=spec.metricName)
        (value,) = self._keda.GetMetrics(wanted, timeout=_CALL_S).metricValues
        found: float = value.metricValueFloat
        return found

    def activity(self, namespace: str, name: str, metadata: Mapping[str, str]) -> Iterator[bool]:
        """What the stream says, to its end. Raises grpc.RpcError where that is not an OK."""
        target = pb.ScaledObjectRef(namespace=namespace, name=name, scalerMetadata=metadata)
        for said in self._keda.StreamIsActive(target):
            yield said.result

    def serves(self) -> bool:
        """Whether it calls itself SERVING; a scaler that does not answer does not."""
        try:
            answer = self._health.Check(health_pb2.HealthCheckRequest(), timeout=_CALL_S)
        except grpc.RpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
