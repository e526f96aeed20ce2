"""What the chart renders and what the examples show is accepted by a real API server, which knows every field."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cluster import kserve, toolchain
from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.release import rendered

pytestmark = pytest.mark.toolchain

K8S = Path(__file__).parents[2] / "k8s"
EXAMPLES = sorted(file for file in (K8S / "examples").rglob("*.yaml") if not file.stem.endswith("-values"))

FULL = """
replicaCount: 2
leaderElection: {enabled: true}
watchNamespaces: [serving]
extraScaleTargets: [{apiGroup: leaderworkerset.x-k8s.io, resource: leaderworkersets}]
delivery: {direct: true}
ray: {enabled: true}
policies: {chat: {policy: adaptive, headroom: 10%}}
sources: {bearerToken: {secretName: page-token}, ca: {configMapName: page-ca}}
tls: {secretName: scaler-tls, clientCA: {secretName: keda-ca}}
recording: {enabled: true}
networkPolicy: {egress: {enabled: true}}
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true}
dashboards: {enabled: true}
"""


@pytest.fixture(scope="module")
def strict(api_server: ControlPlane) -> ControlPlane:
    """The API server with the resources of the examples' projects, the chart's own, and the namespaces of both."""
    for part, file in (("keda", ""), ("kuberay", ""), ("lws", "leaderworkerset.x-k8s.io_leaderworkersets.yaml")):
        api_server.apply_crds(toolchain.module_dir(part) / "config" / "crd" / "bases" / file)
    operator = toolchain.module_dir("prometheus-operator") / "example" / "prometheus-operator-crd"
    for name in ("servicemonitors", "prometheusrules"):
        api_server.apply_crds(operator / f"monitoring.coreos.com_{name}.yaml")
    kserve.install_kinds(api_server, "serving.kserve.io_inferenceservices")
    api_server.apply(*(made for made in rendered("ray: {enabled: true}") if made["kind"] == "CustomResourceDefinition"))
    for name in ("keda", "serving"):
        api_server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return api_server


def refused(plane: ControlPlane, manifests: list[Manifest]) -> str:
    """What a strict API server has against the manifests, empty when it takes all of them; nothing is kept."""
    try:
        plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(manifests))
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("values", ["{}", "podDisruptionBudget: {enabled: true}", FULL])
def test_the_chart_is_accepted(strict: ControlPlane, values: str) -> None:
    manifests = rendered(values)
    assert len(manifests) >= 6
    assert refused(strict, manifests) == ""


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.relative_to(K8S / "examples")))
def test_the_examples_are_accepted(strict: ControlPlane, file: Path) -> None:
    manifests = list(yaml.safe_load_all(file.read_text()))
    assert manifests
    assert refused(strict, manifests) == ""


def test_what_production_stack_makes_of_its_values_is_accepted(strict: ControlPlane) -> None:
    values = yaml.safe_load((K8S / "examples" / "production-stack-values.yaml").read_text())
    (model,) = values["servingEngineSpec"]["modelSpec"]
    assert model["keda"].pop("enabled")
    # The chart passes the rest of the block on as it is, and puts the names of its own objects to it.
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"vllm-{model['name']}-deployment-vllm"}
    scaled_object = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": f"vllm-{model['name']}-scaledobject", "namespace": "serving"},
        "spec": {"scaleTargetRef": target, **model["keda"]},
    }
    assert refused(strict, [scaled_object]) == ""
    lint = [sys.executable, "-c", "from scaler.cli import main; main()", "lint", "--strict", "-"]
    linted = subprocess.run(lint, input=yaml.safe_dump(scaled_object), capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


def test_alerts_without_an_expression_would_be_refused(strict: ControlPlane) -> None:
    (rule,) = (made for made in rendered(FULL) if made["kind"] == "PrometheusRule")
    del rule["spec"]["groups"][0]["rules"][0]["expr"]
    assert "expr" in refused(strict, [rule])


def test_a_misspelt_field_would_be_refused(strict: ControlPlane) -> None:
    file = K8S / "examples" / "deployment.yaml"
    text = file.read_text().replace("terminationGracePeriodSeconds", "terminationGraceSeconds")
    assert "terminationGraceSeconds" in refused(strict, list(yaml.safe_load_all(text)))
