"""`make demo-cluster`: a real cluster with KEDA, the scaler, a simulated fleet and traffic, to be looked at.

It prints what happens and how to look closer, runs until Ctrl-C or for as long as `--for` says, and leaves nothing.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from pathlib import Path

import grpc

from inference.simulated import MEMORY_BOUND
from inference.simulated.traffic import BENCHMARK, Rate, arrivals, wave
from scaler.policy.parsing import parse_duration
from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from tests.cluster import toolchain
from tests.cluster.fleet import ClusterFleet
from tests.cluster.keda import NAMESPACE as SCALER_NAMESPACE
from tests.cluster.keda import KedaCluster
from tests.cluster.local_pod import LocalPod
from tests.cluster.programs import ProgramError
from tests.cluster.release import Release
from tests.cluster.workloads import deployment, scaled_object

NAMESPACE, NAME = "serving", "llama"
METADATA = {"downscaleDelay": "45s", "downscaleLimit": "100%/15s"}
"""A user would give it longer; here a wave is to be seen going down too."""
TRAFFIC: Rate = wave(mean=3.0, amplitude=2.5, period_s=240.0)
_FOR_EVER_S = 1e9
_LINE_EVERY_S = 15.0

_LOOK = """
It runs{until}, with the live page at http://{http}/. From another terminal:

  export KUBECONFIG={kubeconfig}
  export PATH={path}:$PATH
  kubectl -n {namespace} get scaledobjects,horizontalpodautoscalers,deployments,pods
  kubectl -n {namespace} get deployment {name} --watch
  kubectl -n {namespace} describe scaledobject {name}
  helm -n {scaler_namespace} get values vllm-scaler --all
  grpcurl -plaintext {grpc} list
  grpcurl -plaintext -d '{{"namespace": "{namespace}", "name": "{name}"}}' {grpc} vllmscaler.v1.Insight/Explain
  vllm-scaler explain {namespace}/{name} --server {grpc}
  vllm-scaler explain {namespace}/{name} --server {grpc} --watch
  curl http://{http}/metrics
  curl http://{pod}/metrics

Its pods are played and no kubelet is there: kubectl logs, exec and port-forward have nobody to ask.
"""


def main() -> int:
    """Exit status: 0 at the end or after Ctrl-C, 1 where the cluster cannot be had."""
    parser = argparse.ArgumentParser(prog="make demo-cluster", description=__doc__)
    parser.add_argument("--for", dest="duration_s", type=parse_duration, default=math.inf, metavar="DURATION")
    duration_s: float = parser.parse_args().duration_s
    if (reason := toolchain.missing()) is not None:
        print(reason, file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell's background job begins with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        _run(duration_s)
    except KeyboardInterrupt:
        print("\nstopped")
    except (toolchain.ToolchainError, ProgramError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(duration_s: float) -> None:
    versions = (toolchain.PARTS["kubernetes"].version, toolchain.PARTS["keda"].version)
    print("Starting Kubernetes {} and KEDA {}; the first time they are built, which takes long …".format(*versions))
    with KedaCluster() as cluster:
        release = Release(cluster, SCALER_NAMESPACE)
        release.install()
        scaler = release.run()
        cluster.wait_for("a ready scaler", scaler.is_ready)
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cluster.apply(
            deployment(NAME, startup="20s", drain="60s"),
            scaled_object(NAME, scaler.grpc, METADATA, maximum=8),
            namespace=NAMESPACE,
        )
        traffic = arrivals(TRAFFIC, _FOR_EVER_S, mix=(BENCHMARK,))
        with ClusterFleet(cluster, f"app={NAME}", namespace=NAMESPACE, traffic=traffic, profile=MEMORY_BOUND) as fleet:
            (pod, *_) = cluster.wait_for("the first pod", fleet.pods)
            print(_how_to_look(cluster, scaler, pod.address, duration_s), flush=True)
            _tell(cluster, scaler, fleet, duration_s)


def _how_to_look(cluster: KedaCluster, scaler: LocalPod, pod: str, duration_s: float) -> str:
    programs = (toolchain.binary("kubernetes", "kubectl"), toolchain.binary("grpcurl"), toolchain.binary("helm"))
    folders = [*(program.parent for program in programs), Path(sys.executable).parent]
    return _LOOK.format(
        until=" until Ctrl-C" if math.isinf(duration_s) else f" for {duration_s:g} s",
        kubeconfig=cluster.kubeconfig,
        path=os.pathsep.join(map(str, folders)),
        namespace=NAMESPACE,
        name=NAME,
        scaler_namespace=SCALER_NAMESPACE,
        grpc=scaler.grpc,
        http=scaler.http,
        pod=pod,
    )


def _tell(cluster: KedaCluster, scaler: LocalPod, fleet: ClusterFleet, duration_s: float) -> None:
    """A line whenever the count or its reason changes, and every quarter of a minute."""
    began, told_at, told = time.monotonic(), -math.inf, None
    with grpc.insecure_channel(scaler.grpc) as channel:
        insight = InsightStub(channel)
        while (now := time.monotonic() - began) < duration_s:
            scaler.program.check()
            scale = cluster.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}/scale") or {}
            requested = scale["spec"].get("replicas", 0)
            reason = _last_change(insight)
            pods = fleet.pods()
            if (requested, reason) != told or now - told_at >= _LINE_EVERY_S:
                told, told_at = (requested, reason), now
                running, waiting = sum(pod.running for pod in pods), sum(pod.waiting for pod in pods)
                ready = sum(not pod.draining for pod in pods)
                print(
                    f"{now:5.0f} s  {TRAFFIC.at(now):4.1f} requests/s  {running:4d} running  {waiting:4d} waiting  "
                    f"{ready:2d} of {requested:2d} replicas  {reason}",
                    flush=True,
                )
            time.sleep(min(1.0, max(0.0, duration_s - now)))


def _last_change(insight: InsightStub) -> str:
    """Why the scaler wants what it wants."""
    found = insight.ListTargets(pb.ListTargetsRequest(namespace=NAMESPACE), timeout=10.0)
    return "".join(target.last_change for target in found.targets)


if __name__ == "__main__":
    sys.exit(main())
