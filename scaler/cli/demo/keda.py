"""A stand-in for KEDA and the HPA: the real RPCs over a real connection, and the HPA's own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from scaler.backtest.hpa import SYNC_S, Behavior, Hpa
from scaler.cli.demo.deployment import Deployment
from scaler.cli.demo.scenario import Scenario
from scaler.serving.protocol import externalscaler_pb2 as pb
from scaler.serving.protocol.externalscaler_pb2_grpc import ExternalScalerStub
from scaler.targets import Clock


def exact_hpa(scenario: Scenario) -> Hpa:
    """The HPA as our ScaledObjects ask for it: no tolerance, and no window besides the scaler's own delays."""
    default = Hpa(1, 1)
    return Hpa(
        scenario.minimum,
        scenario.maximum,
        up=Behavior(0.0, default.up.policies, tolerance=0.0),
        down=Behavior(0.0, default.down.policies, tolerance=0.0),
    )


class Keda:
    """Asks the scaler at every sync of the HPA and moves the Deployment, as KEDA with one external trigger does."""

    def __init__(
        self, address: str, ref: pb.ScaledObjectRef, deployment: Deployment, hpa: Hpa, clock: Clock, begin: float
    ) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._scaler = ExternalScalerStub(self._channel)
        self._ref = ref
        self._deployment = deployment
        self._hpa = hpa
        self._clock = clock
        self._begin = begin
        self.errors: list[str] = []
        """What the scaler refused to answer; the HPA then keeps the count."""
        self.syncs = 0

    async def run(self) -> None:
        """Sync until cancelled."""
        async with self._channel:
            while True:
                await self._clock.sleep(SYNC_S)
                await self._sync()

    async def _sync(self) -> None:
        self.syncs += 1
        try:
            spec = (await self._scaler.GetMetricSpec(self._ref)).metricSpecs[0]
            request = pb.GetMetricsRequest(scaledObjectRef=self._ref, metricName=spec.metricName)
            values = (await self._scaler.GetMetrics(request)).metricValues
            await self._scaler.IsActive(self._ref)
        except grpc.aio.AioRpcError as error:
            self.errors.append(f"{error.code().name}: {error.details()}")
            return
        value = sum(v.metricValueFloat if v.metricValueFloat > 0 else v.metricValue for v in values)
        now = self._clock.monotonic() - self._begin
        replicas = self._hpa.sync(
            value / spec.targetSizeFloat, now, self._deployment.requested, self._deployment.current
        )
        if replicas != self._deployment.requested:
            self._deployment.scale(replicas, now)


def reference(namespace: str, name: str, metadata: Mapping[str, str]) -> pb.ScaledObjectRef:
    """The ScaledObject as KEDA names it in every call."""
    return pb.ScaledObjectRef(namespace=namespace, name=name, scalerMetadata=dict(metadata))
