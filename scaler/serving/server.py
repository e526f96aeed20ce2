"""The gRPC server: KEDA's protocol, insight, health and reflection on one port."""

from __future__ import annotations

import asyncio

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from scaler.serving.address import Address
from scaler.serving.external_scaler import ExternalScaler
from scaler.serving.guard import STREAM_LIFE_S, Guard
from scaler.serving.insight import Insight
from scaler.serving.metrics import RpcMetrics
from scaler.serving.protocol import externalscaler_pb2, insight_pb2
from scaler.serving.protocol.externalscaler_pb2_grpc import add_ExternalScalerServicer_to_server
from scaler.serving.protocol.insight_pb2_grpc import add_InsightServicer_to_server
from scaler.targets import Targets

SERVICES = (
    externalscaler_pb2.DESCRIPTOR.services_by_name["ExternalScaler"].full_name,
    insight_pb2.DESCRIPTOR.services_by_name["Insight"].full_name,
)

STOP_S = 5.0
"""How long calls in flight may go on once the server stops."""

CONNECTION_AGE_S = 300.0
"""KEDA keeps one connection for ever; ended after this long it looks up the Service again and finds a new leader."""

OPTIONS = (
    ("grpc.so_reuseport", 0),  # a port in use is an error, not a second server that gets half of the calls
    ("grpc.max_receive_message_length", 1 << 20),
    ("grpc.max_send_message_length", 16 << 20),
    # Every ScaledObject keeps two streams open, all on one connection, and a full one would block unary calls.
    ("grpc.max_concurrent_streams", 10_000),
    # After a restart all of them ask at once; from 1,000 calls not yet taken up gRPC refuses some, from 3,000 all.
    ("grpc.server.max_pending_requests", 10_000),
    ("grpc.server.max_pending_requests_hard_limit", 20_000),
    ("grpc.max_connection_age_ms", int(CONNECTION_AGE_S * 1000)),
    ("grpc.max_connection_age_grace_ms", int((STREAM_LIFE_S + 60) * 1000)),
    # KEDA sends no keepalives: the server finds half-open connections. Clients may ping every 10 s.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)


class Server:
    """Starts NOT_SERVING, so that nobody is sent here before `serve` says that answers are to be had."""

    def __init__(self, targets: Targets, metrics: RpcMetrics) -> None:
        self._stopping = asyncio.Event()
        self._guard = Guard(metrics, self._stopping)
        self._server = grpc.aio.server(interceptors=[self._guard], options=OPTIONS)
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]  # missing in the stub
        add_ExternalScalerServicer_to_server(ExternalScaler(targets), self._server)
        add_InsightServicer_to_server(Insight(targets), self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self, address: Address, credentials: grpc.ServerCredentials | None) -> int:
        """Listen, without TLS when there are no credentials; returns the port. Raises OSError."""
        try:
            if credentials is None:
                port = self._server.add_insecure_port(str(address))
            else:
                port = self._server.add_secure_port(str(address), credentials)
        except RuntimeError as error:
            raise OSError(
                f"cannot listen on {address} for gRPC: the port is in use, or the address is not this machine's"
            ) from error
        await self.serve(False)
        await self._server.start()
        return port

    async def serve(self, serving: bool) -> None:
        """Tell health checks whether this server is the one to ask."""
        status = health_pb2.HealthCheckResponse.ServingStatus.Value("SERVING" if serving else "NOT_SERVING")
        for service in ("", *SERVICES):
            await self._health.set(service, status)

    async def stop(self) -> None:
        """NOT_SERVING, streams end with OK, unary calls that have arrived are answered, then the port closes."""
        await self._health.enter_graceful_shutdown()
        self._stopping.set()
        await self._guard.quiet()
        await self._server.stop(STOP_S)
