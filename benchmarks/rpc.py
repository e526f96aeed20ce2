"""GetMetrics while a thousand targets tick: the latency that KEDA sees, beside that of a server with one target."""

from __future__ import annotations

import time
from collections.abc import Iterator

import grpc

from benchmarks import Row
from benchmarks._steady import NAMESPACE, PODS, TARGETS, server
from scaler.serving.protocol import externalscaler_pb2 as pb
from scaler.serving.protocol.externalscaler_pb2_grpc import ExternalScalerStub

CALLS = 5000
WARM_UP_S = 5.0
BUDGET_MS = 5.0


def rows() -> Iterator[Row]:
    few, many = _latencies_ms(1), _latencies_ms(TARGETS)
    for quantile in (0.5, 0.99):
        ours, alone = (found[int(len(found) * quantile)] for found in (many, few))
        yield Row(
            what=f"GetMetrics while {TARGETS:,} targets of {PODS} pods tick each second, p{quantile * 100:.0f}",
            measured=f"{ours:.2f} ms",
            beside=f"{alone:.2f} ms, with one target",
            ratio=None,
            budget=f"< {BUDGET_MS:g} ms",
            held=ours < BUDGET_MS,
        )


def _latencies_ms(targets: int) -> list[float]:
    """Sorted times that calls take over loopback, one after the other and over all targets in turn."""
    found = []
    with server(targets, WARM_UP_S) as (address, _), grpc.insecure_channel(address) as channel:
        stub = ExternalScalerStub(channel)
        for i in range(CALLS):
            ref = pb.ScaledObjectRef(namespace=NAMESPACE, name=f"model-{i % targets}")
            began = time.perf_counter()
            stub.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref))
            found.append((time.perf_counter() - began) * 1000)
    return sorted(found)
