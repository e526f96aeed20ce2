"""500 ScaledObjects of 4 pods each on one scaler

A real API server with its controllers, kwok, and the real KEDA with its 500 HPAs. The scaler runs as the chart installs
it, with the preset `adaptive`, and asks 2,000 pods for their pages every second, over real HTTP. The pods answer from
memory (a simulated engine's minute, page by page), each at its own address. All of this shares one machine. The calls
that are timed come from a client of its own, beside those of KEDA. KEDA's operator has `--kube-api-qps=200`: with its
default of 20 it took half a minute to take up each new ScaledObject.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import grpc
import httpx

from benchmarks import Row
from benchmarks._pods import Pages, serving
from benchmarks._processes import cpu_s, resident_mb
from inference.simulated import Fleet, Page
from inference.simulated.traffic import CHAT, arrivals, constant
from scaler.serving.protocol import externalscaler_pb2 as pb
from scaler.serving.protocol import insight_pb2
from scaler.serving.protocol.externalscaler_pb2_grpc import ExternalScalerStub
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from tests.cluster.control_plane import Manifest
from tests.cluster.keda import NAMESPACE as SCALER_NAMESPACE
from tests.cluster.keda import KedaCluster
from tests.cluster.local_pod import LocalPod
from tests.cluster.release import Release
from tests.cluster.workloads import deployment, scaled_object

NAMESPACES = 4
EACH = 125
PODS_EACH = 4
TARGETS = NAMESPACES * EACH
PODS = TARGETS * PODS_EACH
PORT = 8000
MORE_CALLS = ("--kube-api-qps=200", "--kube-api-burst=400")
"""Of KEDA's operator to the API server, a second: its default of 20 takes half a minute for each new ScaledObject."""
SETTLE_S = 45.0
MEASURE_S = 60.0
CALL_EVERY_S = 0.05
SET_UP_S = 600.0
MOST_MB = 300
MOST_MS = 5.0
MOST_REQUESTS = 2.0
"""To the API server: a watch of each kind in each namespace, anew every ten seconds, and nothing at each tick."""
OTHERS = ("kube-apiserver", "etcd", "kube-controller-manager", "keda-operator", "keda-adapter", "pods")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment."""

    time: float
    cpu_s: Mapping[str, float]
    """By program."""
    calls: float
    """Unary calls that the scaler has answered."""
    pods_read: float
    api_requests: float
    """To the API server, from everybody."""
    api_requests_by_scaler: float


def rows() -> Iterator[Row]:
    """What the scaler takes, beside what the programs around it take."""
    with KedaCluster(operator_options=MORE_CALLS) as cluster, Release(cluster, SCALER_NAMESPACE) as release:
        release.install()
        scaler = release.run()
        cluster.wait_for("a ready scaler", scaler.is_ready)
        alone_mb = resident_mb(_pid(scaler))
        namespaces = [cluster.create_namespace("bench") for _ in range(NAMESPACES)]
        names = [f"llm-{i}" for i in range(EACH)]
        for namespace in namespaces:
            cluster.apply(*(deployment(name, replicas=PODS_EACH) for name in names), namespace=namespace)
        addresses = cluster.wait_for(f"{PODS} ready pods", partial(_addresses, cluster, namespaces), timeout_s=SET_UP_S)
        with serving(Pages(_minute(), filters=True), addresses) as (_, fleet):
            for namespace in namespaces:
                cluster.apply(*(_scaled_object(name, scaler.grpc) for name in names), namespace=namespace)
            with grpc.insecure_channel(scaler.grpc) as channel:
                decided = partial(_all_decided, InsightStub(channel))
                cluster.wait_for("a decision for each", decided, timeout_s=SET_UP_S)
                cluster.wait_for("an HPA for each", partial(_all_asked, cluster, namespaces), timeout_s=SET_UP_S)
                time.sleep(SETTLE_S)
                before = _read(cluster, release, scaler, fleet)
                took_ms = sorted(_calls(ExternalScalerStub(channel), [(n, name) for n in namespaces for name in names]))
                after = _read(cluster, release, scaler, fleet)
                resident = resident_mb(_pid(scaler))
    yield from _rows(before, after, took_ms, resident, alone_mb)


def _minute() -> list[bytes]:
    """The page of a busy engine, second by second for a minute."""
    fleet = Fleet(arrivals(constant(1.0), 120.0, mix=[CHAT], seed=1))
    fleet.add(0.0, name="pod")
    page = Page(fleet.pods["pod"].engine, model_name="simulated")
    pages = []
    for second in range(120):
        fleet.advance(float(second))
        pages.append(page.render().encode())
    return pages[60:]


def _addresses(cluster: KedaCluster, namespaces: list[str]) -> list[tuple[str, int]] | None:
    """Of all pods, once all are ready."""
    if sum(len(cluster.ready_pods(namespace)) for namespace in namespaces) < PODS:
        return None
    pods = [pod for n in namespaces for pod in (cluster.get(f"/api/v1/namespaces/{n}/pods") or {})["items"]]
    return [(pod["status"]["podIP"], PORT) for pod in pods]


def _scaled_object(name: str, address: str) -> Manifest:
    made = scaled_object(name, address, maximum=PODS_EACH)
    return {**made, "spec": {**made["spec"], "minReplicaCount": PODS_EACH}}


def _all_decided(insight: InsightStub) -> bool:
    targets = insight.ListTargets(insight_pb2.ListTargetsRequest(), timeout=30.0).targets
    return sum(target.state in (insight_pb2.ACTIVE, insight_pb2.IDLE) for target in targets) == TARGETS


def _all_asked(cluster: KedaCluster, namespaces: list[str]) -> bool:
    """Whether every HPA has got a value."""
    path = "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers"
    hpas = [hpa for n in namespaces for hpa in (cluster.get(path.format(n)) or {})["items"]]
    return len([hpa for hpa in hpas if hpa["status"].get("currentMetrics")]) == TARGETS


def _calls(scaler: ExternalScalerStub, keys: list[Key]) -> Iterator[float]:
    """How long calls for random targets took, in ms, over the measured time."""
    choice = random.Random(1)
    end = time.monotonic() + MEASURE_S
    while time.monotonic() < end:
        namespace, name = choice.choice(keys)
        ref = pb.ScaledObjectRef(namespace=namespace, name=name)
        began = time.perf_counter()
        scaler.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref))
        yield (time.perf_counter() - began) * 1000
        time.sleep(CALL_EVERY_S)


def _read(cluster: KedaCluster, release: Release, scaler: LocalPod, fleet: int) -> Reading:
    own = httpx.get(f"http://{scaler.http}/metrics", trust_env=False).text
    programs = {program.name: cpu_s(program.pid) for program in cluster.programs.values() if program.pid}
    return Reading(
        time.monotonic(),
        {**programs, "scaler": cpu_s(_pid(scaler)), "pods": cpu_s(fleet)},
        _sum(own, "vllm_scaler_rpc_duration_seconds_count"),
        _sum(own, "vllm_scaler_pod_reads_total", 'outcome="read"'),
        _sum(cluster.api.get("/metrics").text, "apiserver_request_total"),
        sum(0.5 if call.verb == "watch" else 1.0 for call in release.calls()),  # a watch is noted when it ends, too
    )


def _sum(page: str, name: str, label: str = "") -> float:
    """Over all series of a name that carry the label."""
    lines = re.findall(rf"^{name}(\{{.*\}})? (\S+)$", page, re.MULTILINE)
    return sum(float(value) for labels, value in lines if label in labels)


def _pid(pod: LocalPod) -> int:
    assert pod.program.pid is not None, "the scaler has ended"
    return pod.program.pid


def _rows(before: Reading, after: Reading, took_ms: list[float], resident: float, alone_mb: float) -> Iterator[Row]:
    """`took_ms` is sorted; memory is in MB."""
    took_s = after.time - before.time

    calls, pods, requests, own_requests = (
        (then - now) / took_s
        for now, then in (
            (before.calls, after.calls),
            (before.pods_read, after.pods_read),
            (before.api_requests, after.api_requests),
            (before.api_requests_by_scaler, after.api_requests_by_scaler),
        )
    )
    cores = {name: (after.cpu_s[name] - before.cpu_s[name]) / took_s for name in after.cpu_s}
    others = ", ".join(f"{cores[name]:.2f} {name}" for name in OTHERS)
    yield Row(
        what=f"processor time, with {pods:,.0f} pages a second read",
        measured=f"{cores['scaler']:.2f} cores",
        beside=others,
        ratio=None,
        budget="< 1 core",
        held=cores["scaler"] < 1.0,
    )
    yield Row(
        what="resident memory",
        measured=f"{resident:.0f} MB",
        beside=f"{alone_mb:.0f} MB, without a ScaledObject",
        ratio=None,
        budget=f"< {MOST_MB} MB",
        held=resident < MOST_MB,
    )
    yield Row(
        what="pods read in time",
        measured=f"{pods:,.0f} a second",
        beside=f"{PODS:,} pods",
        ratio=None,
        budget="≥ 99 %",
        held=pods >= 0.99 * PODS,
    )
    for quantile in (0.5, 0.99):
        took = took_ms[int(len(took_ms) * quantile)]
        yield Row(
            what=f"GetMetrics, p{quantile * 100:.0f}",
            measured=f"{took:.2f} ms",
            beside=f"KEDA's {calls - len(took_ms) / took_s:.0f} calls a second at the same time",
            ratio=None,
            budget=f"< {MOST_MS:g} ms",
            held=took < MOST_MS,
        )
    yield Row(
        what="calls of the scaler to the API server",
        measured=f"{own_requests:.2f} a second",
        beside=f"{requests:.0f} a second, from all programs",
        ratio=None,
        budget=f"< {MOST_REQUESTS:g} a second",
        held=own_requests < MOST_REQUESTS,
    )
