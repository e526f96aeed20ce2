"""What `vllm-scaler init` makes of a workload in a real cluster is accepted by it, which knows every field."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane

pytestmark = pytest.mark.toolchain

EXAMPLE = Path(__file__).parents[2] / "k8s" / "examples" / "deployment.yaml"

FORMER = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: by-prometheus, labels: {team: "007"}}
spec:
  scaleTargetRef: {name: qwen3-8b}
  maxReplicaCount: 12
  fallback: {failureThreshold: 3, replicas: 2}
  advanced: {restoreToOriginalReplicaCount: true, horizontalPodAutoscalerConfig: {name: by-hand}}
  triggers:
    - type: prometheus
      metadata: {serverAddress: "http://prometheus:9090", query: sum(vllm:num_requests_waiting), threshold: "5"}
"""


@pytest.mark.parametrize("former", ["", FORMER], ids=["new", "instead of a Prometheus trigger"])
def test_what_init_writes_from_the_cluster_is_accepted_by_it(
    api_server: ControlPlane, namespace: str, former: str
) -> None:
    api_server.apply_crds(toolchain.module_dir("keda") / "config" / "crd" / "bases")
    workload = next(each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each["kind"] == "Deployment")
    workload["metadata"]["namespace"] = namespace
    api_server.apply(workload, namespace=namespace)
    words = ["init", "deployment/qwen3-8b", "-n", namespace, "--kubeconfig", str(api_server.kubeconfig)]
    words += ["--from", "-"] if former else []
    command = [
        sys.executable,
        "-c",
        "from scaler.cli import main; main()",
        *words,
        *(["--from", "-"] if former else []),
    ]
    text = subprocess.run(command, input=former, capture_output=True, text=True, check=True, timeout=120).stdout
    scaled_object, hint = text.split("# ---\n")
    both = f"{scaled_object}---\n{hint.replace('# ', '')}"
    told = api_server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=both)
    name = "by-prometheus" if former else "qwen3-8b"
    assert f"scaledobject.keda.sh/{name} created" in told
    assert "poddisruptionbudget.policy/qwen3-8b created" in told
