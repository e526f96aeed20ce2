"""`vllm-scaler init`: what it writes for each kind, what it keeps of a former ScaledObject, and what it refuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from scaler.cli.drafting import StartUp, Target, draft, former_of, target_of_former
from scaler.cli.drafting.workload import INFERENCE_SERVICES
from scaler.cli.init import init
from scaler.cli.linting import Given, check
from scaler.cli.linting.manifests import Manifest, read
from scaler.cluster.resources import DEPLOYMENTS, PODS
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.objects import condition, deployment, pod

app = typer.Typer()
app.command()(init)

EXAMPLES = Path(__file__).parents[3] / "k8s" / "examples"

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: qwen, namespace: serving, annotations: {serving.kserve.io/deploymentMode: Standard}}
spec: {predictor: {minReplicas: 2, maxReplicas: 6, model: {modelFormat: {name: huggingface}}}}
"""

FORMER = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: by-prometheus
  namespace: serving
  labels: {team: "007", scaledobject.keda.sh/name: by-prometheus}
  annotations: {autoscaling.keda.sh/paused: "true", kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec:
  scaleTargetRef: {name: llama}
  minReplicaCount: 0
  maxReplicaCount: 12
  pollingInterval: 5
  initialCooldownPeriod: 60
  fallback: {failureThreshold: 3, replicas: 4}
  advanced:
    scalingModifiers: {}
    horizontalPodAutoscalerConfig:
      name: llama-hpa
      behavior: {scaleDown: {stabilizationWindowSeconds: 600}}
  triggers:
    - type: prometheus
      metadata: {serverAddress: "http://prometheus:9090", query: sum(vllm:num_requests_waiting), threshold: "5"}
"""

OURS = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llama, namespace: serving}
spec:
  scaleTargetRef: {name: llama}
  minReplicaCount: 2
  maxReplicaCount: 12
  triggers:
    - type: external
      authenticationRef: {name: mutual-tls}
      metadata: {scalerAddress: "vllm-scaler.ops.svc:9090", downscaleDelay: 10m}
"""


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, words, input=stdin)


def written(*words: str, stdin: str = "") -> dict[str, Any]:
    """The ScaledObject that is written, which has passed `lint`."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert remarks(result.stdout) == []
    scaled_object: dict[str, Any] = yaml.safe_load(result.stdout)
    return scaled_object


def comments(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


def remarks(text: str, start_up_s: float = 300.0) -> list[str]:
    report = check([("f.yaml", text)], Given(start_up_s=start_up_s))
    assert report.checked == 1
    return [finding.what for finding in report.findings]


def without_scaled_object(example: str) -> str:
    manifests = yaml.safe_load_all((EXAMPLES / example).read_text())
    return yaml.safe_dump_all([each for each in manifests if each["kind"] != "ScaledObject"])


def budget(text: str) -> dict[str, Any]:
    """The hint below the ScaledObject, without its comment signs."""
    _, _, hint = text.partition("# ---\n")
    found: dict[str, Any] = yaml.safe_load(hint.replace("# ", ""))
    return found


def live_deployment(name: str = "llama", replicas: int = 1) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", **deployment(name, replicas)}


WORKLOADS = {
    "deployment.yaml": ("apps/v1", "Deployment", "qwen3-8b"),
    "statefulset.yaml": ("apps/v1", "StatefulSet", "llama-70b"),
    "leaderworkerset.yaml": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llama-405b"),
    "ray/raycluster.yaml": ("vllm-scaler.dev/v1alpha1", "RayWorkerGroup", "qwen3-8b"),
}


@pytest.mark.parametrize("example", WORKLOADS)
def test_what_is_written_for_a_workload_points_at_it_and_passes_lint(example: str) -> None:
    version, kind, name = WORKLOADS[example]
    scaled_object = written("-f", "-", stdin=without_scaled_object(example))
    assert scaled_object["metadata"] == {"name": name, "namespace": "serving"}
    assert scaled_object["spec"]["scaleTargetRef"] == {"apiVersion": version, "kind": kind, "name": name}


@pytest.mark.parametrize("example", WORKLOADS)
def test_lint_has_no_more_to_say_of_both_together_than_of_the_workload(example: str) -> None:
    workload = without_scaled_object(example)
    text = run("-f", "-", "--max", "24", stdin=workload).stdout
    assert remarks(f"{text}\n---\n{workload}") == []


def test_an_inference_service_is_scaled_by_the_deployment_that_kserve_makes_of_it() -> None:
    result = run("-f", "-", stdin=SERVICE)
    spec = yaml.safe_load(result.stdout)["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "qwen-predictor"}
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 6)
    assert "serving.kserve.io/autoscalerClass=external" in result.stdout
    assert budget(result.stdout)["spec"]["selector"] == {"matchLabels": {"app": "isvc.qwen-predictor"}}


def test_every_choice_has_its_reason_above_it() -> None:
    lines = run("-f", str(EXAMPLES / "deployment.yaml")).stdout.splitlines()
    for choice in (
        "minReplicaCount:",
        "maxReplicaCount:",
        "fallback:",
        "tolerance:",
        "stabilizationWindowSeconds:",
        "policies:",
        "triggers:",
        "- type:",
        "metricType:",
    ):
        at = next(number for number, line in enumerate(lines) if line.lstrip().startswith(choice))
        assert lines[at - 1].lstrip().startswith("# "), choice


def test_the_budget_is_a_hint_that_fits_the_pods_and_blocks_no_drain() -> None:
    made = budget(run("-f", str(EXAMPLES / "leaderworkerset.yaml")).stdout)
    assert (made["kind"], made["metadata"]) == ("PodDisruptionBudget", {"name": "llama-405b", "namespace": "serving"})
    assert made["spec"] == {
        "maxUnavailable": 1,
        "selector": {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "llama-405b"}},
    }


def test_rays_pods_get_no_budget_since_it_would_block_every_drain() -> None:
    text = run("-f", str(EXAMPLES / "ray" / "raycluster.yaml")).stdout
    assert "# No PodDisruptionBudget" in text
    assert "# kind: PodDisruptionBudget" not in text


@pytest.mark.parametrize(("told", "cooldown"), [("2m", 300), ("301s", 360), ("20m", 1200)])
def test_the_cool_down_is_no_shorter_than_a_start_up(told: str, cooldown: int) -> None:
    text = run("-f", str(EXAMPLES / "deployment.yaml"), "--start-up-time", told).stdout
    assert f"\n  # cooldownPeriod: {cooldown}\n  # initialCooldownPeriod: {cooldown}\n" in text


def test_what_keda_warns_of_with_a_minimum_above_zero_is_a_comment() -> None:
    assert {"cooldownPeriod", "initialCooldownPeriod"}.isdisjoint(written("--from", "-", stdin=FORMER)["spec"])


def test_a_start_up_that_nobody_knows_is_named_an_assumption() -> None:
    assert "300 s, an assumption: --start-up-time" in run("-f", str(EXAMPLES / "deployment.yaml")).stdout


def test_a_maximum_that_nobody_said_is_twice_what_is_there_and_named_an_assumption() -> None:
    result = run("-f", "-", stdin=yaml.safe_dump(live_deployment(replicas=3)))
    assert yaml.safe_load(result.stdout)["spec"]["maxReplicaCount"] == 6
    assert "An assumption, twice the count of now;" in comments(result.stdout)
    assert "Leave replicas out of the manifest" in comments(result.stdout)


def test_limits_that_are_said_win_over_those_that_are_there() -> None:
    spec = written("--from", "-", "--min", "3", "--max", "30", stdin=FORMER)["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (3, 30)


def test_a_namespace_that_the_file_leaves_open_is_taken_from_the_option_or_left_open() -> None:
    open_one = SERVICE.replace("namespace: serving, ", "")
    assert written("-f", "-", "-n", "ai", stdin=open_one)["metadata"]["namespace"] == "ai"
    assert "namespace" not in written("-f", "-", stdin=open_one)["metadata"]


def test_of_a_prometheus_trigger_it_is_told_what_changes_and_the_rest_is_kept() -> None:
    text = run("--from", "-", stdin=FORMER).stdout
    told = comments(text)
    for change in (
        "the trigger prometheus (query: sum(vllm:num_requests_waiting), threshold: 5) goes: the scaler reads",
        "minReplicaCount: 0 → 1",
        "pollingInterval: 5 → left out, which is 30",
        "initialCooldownPeriod: 60 → left out, which is 0: only on the way to 0",
        "scaleUp.tolerance: left out, which is 0.1 → 0",
        "scaleDown.stabilizationWindowSeconds: 600 → 0",
        "behavior: currentReplicasIfHigher",
    ):
        assert change in told
    for same in ("maxReplicaCount:", "- cooldownPeriod:", "scalingModifiers"):
        assert same not in told
    scaled_object = written("--from", "-", stdin=FORMER)
    spec = scaled_object["spec"]
    assert scaled_object["metadata"] == {
        "name": "by-prometheus",
        "namespace": "serving",
        "labels": {"team": "007"},
        "annotations": {"autoscaling.keda.sh/paused": "true"},
    }
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": 4, "behavior": "currentReplicasIfHigher"}
    assert spec["advanced"]["horizontalPodAutoscalerConfig"]["name"] == "llama-hpa"
    assert [trigger["type"] for trigger in spec["triggers"]] == ["external-push"]


def test_a_trigger_that_was_this_scalers_already_keeps_its_metadata_and_certificates() -> None:
    made = written("--from", "-", stdin=OURS)
    assert made["metadata"] == {"name": "llama", "namespace": "serving"}
    [trigger] = made["spec"]["triggers"]
    assert trigger == {
        "type": "external-push",
        "metricType": "AverageValue",
        "authenticationRef": {"name": "mutual-tls"},
        "metadata": {"scalerAddress": "vllm-scaler.ops.svc:9090", "downscaleDelay": "10m"},
    }


def test_nothing_changes_when_what_was_written_is_given_again() -> None:
    once = run("--from", "-", stdin=FORMER).stdout
    twice = run("--from", "-", stdin=once).stdout
    assert "- nothing changes" in twice
    assert yaml.safe_load(once) == yaml.safe_load(twice)


def test_a_warning_about_what_was_kept_is_told_beside_the_draft() -> None:
    result = run("--from", "-", stdin=OURS.replace("downscaleDelay: 10m", "policy: chat"))
    assert yaml.safe_load(result.stdout)["spec"]["triggers"][0]["metadata"]["policy"] == "chat"
    assert "policy 'chat' is no preset" in result.stderr


def test_the_former_one_is_found_among_others_by_what_it_scales(tmp_path: Path) -> None:
    other = FORMER.replace("by-prometheus", "other").replace("name: llama}", "name: other}")
    (tmp_path / "all.yaml").write_text(f"{FORMER}---{other}")
    workload = yaml.safe_dump(live_deployment("other"))
    made = written("-f", "-", "--from", str(tmp_path / "all.yaml"), stdin=workload)
    assert made["metadata"]["name"] == "other"


RAY = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: llama}\n"
TWO = f"{SERVICE}---{SERVICE.replace('name: qwen', 'name: chat')}"
REFUSED: dict[str, tuple[list[str], str, str]] = {
    "nothing": ([], "", "what is to be scaled?"),
    "kind": (["deplyment/llama"], "", "known are deployment, statefulset"),
    "no name": (["deployment"], "", "right is, for instance, deployment/llama"),
    "no kind": (["llama"], "", "right is KIND/NAME, for instance deployment/llama"),
    "no such name": (["deployment/a/b"], "", "right is, for instance, deployment/llama"),
    "ray by name": (["raycluster/llama"], "", "right is a RayWorkerGroup that names it"),
    "ray by file": (["-f", "-"], RAY, "right is a RayWorkerGroup that names it"),
    "ray by former": (
        ["--from", "-"],
        FORMER.replace("{name: llama}", "{apiVersion: ray.io/v1, kind: RayService, name: llama}"),
        "right is a RayWorkerGroup that names it",
    ),
    "daemon set": (["daemonset/llama"], "", "right is a Deployment"),
    "not there": (["deployment/llama", "-f", "-"], SERVICE, "there is inferenceservice/qwen"),
    "several": (["-f", "-"], TWO, "say which one: inferenceservice/qwen, inferenceservice/chat"),
    "another kind": (["-f", "-"], FORMER, "no workload in the file, but ScaledObject"),
    "empty": (["-f", "-"], "", "no workload in the file, but no object"),
    "no yaml": (["-f", "-"], "a: b: c", "no YAML"),
    "no such file": (["-f", "missing.yaml"], "", "missing.yaml: No such file"),
    "stdin twice": (["-f", "-", "--from", "-"], SERVICE, "one of them must be a file"),
    "knative": (["-f", "-"], SERVICE.replace("Standard", "Knative"), "deploymentMode: Standard"),
    "several nodes": (["-f", "-"], SERVICE.replace("model:", "workerSpec: {}, model:"), "right is a LeaderWorkerSet"),
    "no former": (["--from", "-"], SERVICE, "there is no ScaledObject in it"),
    "limits": (["-f", "-", "--max", "1"], SERVICE, "the minimum 2 is above the maximum 1"),
    "no minimum of 0": (["-f", "-", "--min", "0"], SERVICE, "--min"),
    "duration": (["-f", "-", "--start-up-time", "soon"], SERVICE, "'soon' is wrong"),
    "address": (["-f", "-", "--scaler-address", "vllm-scaler"], SERVICE, "is no HOST:PORT"),
    "wrong metadata kept": (["--from", "-"], OURS.replace("downscaleDelay", "downscaleDelai"), "downscaleDelay"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_drafted_is_refused_with_what_would_be_right(case: str) -> None:
    words, stdin, told = REFUSED[case]
    result = run(*words, stdin=stdin)
    assert result.exit_code == 2
    assert told in re.sub(r"\s+", " ", result.stderr.replace("│", " "))
    assert result.stdout == ""


def test_a_former_one_of_another_workload_is_refused(tmp_path: Path) -> None:
    (tmp_path / "former.yaml").write_text(FORMER)
    result = run("-f", "-", "--from", str(tmp_path / "former.yaml"), stdin=SERVICE)
    assert result.exit_code == 2
    assert "by-prometheus (of Deployment llama)" in re.sub(r"\s+", " ", result.stderr.replace("│", " "))


def test_a_workload_that_another_one_makes_is_refused() -> None:
    made = live_deployment("qwen-predictor")
    made["metadata"]["ownerReferences"] = [{"kind": "InferenceService", "name": "qwen", "controller": True}]
    result = run("-f", "-", stdin=yaml.safe_dump(made))
    assert result.exit_code == 2
    assert "init inferenceservice/qwen" in re.sub(r"\s+", " ", result.stderr.replace("│", " "))


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@settings(max_examples=50, deadline=None)
@given(
    minimum=st.integers(1, 200),
    more=st.integers(0, 200),
    start_up_s=st.floats(0, 7200),
    labels=st.dictionaries(WORDS, WORDS, max_size=3),
    name=st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,80}[a-z0-9])?", fullmatch=True),
)
def test_whatever_is_given_the_draft_passes_lint_and_keeps_texts_as_they_were(
    minimum: int, more: int, start_up_s: float, labels: dict[str, str], name: str
) -> None:
    content = {**yaml.safe_load(FORMER), "metadata": {"name": "former", "labels": labels}}
    former = former_of(manifests(yaml.safe_dump(content)), None, "")
    target = Target("serving", "apps/v1", "Deployment", name)
    for before in (None, former):
        text = draft(target, StartUp(start_up_s, "told"), None, minimum, minimum + more, before).text
        assert remarks(text, start_up_s) == []
        made = yaml.safe_load(text)
        assert made["spec"]["scaleTargetRef"]["name"] == name
        assert made["metadata"].get("labels", {}) == (labels if before else {})
        assert len(made["metadata"]["name"]) <= 54
        assert max(map(len, text.splitlines())) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
PATHS = [
    ("metadata",),
    ("metadata", "name"),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
    ("spec",),
    ("spec", "replicas"),
    ("spec", "selector"),
    ("spec", "predictor"),
    ("spec", "scaleTargetRef"),
    ("spec", "scaleTargetRef", "name"),
    ("spec", "minReplicaCount"),
    ("spec", "maxReplicaCount"),
    ("spec", "fallback"),
    ("spec", "advanced"),
    ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior"),
    ("spec", "triggers"),
    ("spec", "triggers", 0),
    ("spec", "triggers", 0, "metadata"),
    ("spec", "triggers", 0, "authenticationRef"),
]


@settings(max_examples=200, deadline=None)
@given(
    manifest=st.sampled_from([FORMER, OURS, SERVICE, yaml.safe_dump(live_deployment())]),
    path=st.sampled_from(PATHS),
    value=JSON,
)
def test_whatever_a_manifest_holds_it_is_drafted_for_or_refused(
    manifest: str, path: tuple[str | int, ...], value: Any
) -> None:
    content = inner = yaml.safe_load(manifest)
    for step in path[:-1]:
        inner = inner.setdefault(step, {}) if isinstance(inner, dict) else inner[step]
    inner[path[-1]] = value
    way = "--from" if content["kind"] == "ScaledObject" else "-f"
    result = run(way, "-", stdin=yaml.safe_dump(content, allow_unicode=True))
    assert result.exit_code in (0, 2), result.exception
    assert (result.stdout == "") == (result.exit_code == 2)
    if result.exit_code == 0:
        assert yaml.safe_load(result.stdout)["kind"] == "ScaledObject"


def test_aliases_without_end_are_told_in_few_words() -> None:
    bomb = "".join(f"x{n + 1}: &a{n + 1} [*a{n}, *a{n}, *a{n}, *a{n}]\n" for n in range(40))
    content = FORMER.replace("sum(vllm:num_requests_waiting)", "*a40").replace("replicas: 4", "replicas: *a40")
    former = former_of(manifests(f"x0: &a0 [1]\n{bomb}{content}"), None, "")
    text = draft(target_of_former(former, ""), StartUp(60, "told"), former=former).text
    assert len(text) < 10_000


def manifests(text: str) -> list[Manifest]:
    return [each for each in read("f.yaml", text) if isinstance(each, Manifest)]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[FakeApi]:
    async with FakeApi(tmp_path) as api:
        yield api


async def run_live(api: FakeApi, *words: str) -> Result:
    return await asyncio.to_thread(run, *words, "--kubeconfig", str(api.kubeconfig))


def started(name: str, took_s: float) -> dict[str, Any]:
    """A pod that became ready so long after it was created."""
    at = datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=took_s)
    return pod(name, condition("Ready", True, at.strftime("%Y-%m-%dT%H:%M:%SZ")))


async def cluster_of(api: FakeApi, *pods: dict[str, Any]) -> None:
    await api.put(DEPLOYMENTS, deployment("llama", 2))
    scale = {"spec": {"replicas": 2}, "status": {"replicas": 2, "selector": "app=llama"}}
    await api.set_scale(DEPLOYMENTS, "serving", "llama", scale)
    await api.put(PODS, *pods)


async def test_from_a_live_cluster_the_start_up_is_measured_on_its_pods(api: FakeApi) -> None:
    unready_for_a_while = started("c", 90_000)
    await cluster_of(api, started("a", 400), started("b", 430), unready_for_a_while)
    result = await run_live(api, "deployment/llama", "-n", "serving")
    spec = yaml.safe_load(result.stdout)["spec"]
    assert "430 s, measured on 2 pods" in result.stdout
    assert "# cooldownPeriod: 480" in result.stdout
    assert spec["maxReplicaCount"] == 4
    assert remarks(result.stdout, 430) == []
    assert {verb for verb, _ in api.requests} == {"get", "list"}


async def test_a_live_cluster_without_a_ready_pod_leaves_the_start_up_an_assumption(api: FakeApi) -> None:
    await cluster_of(api, pod("a"))
    result = await run_live(api, "deploy/llama", "-n", "serving")
    assert "300 s, an assumption" in result.stdout


async def test_a_start_up_that_was_said_needs_no_right_to_see_pods(api: FakeApi) -> None:
    await cluster_of(api)
    api.forbidden.add(("list", "pods"))
    assert (await run_live(api, "deploy/llama", "-n", "serving", "--start-up-time", "4m")).exit_code == 0
    refused = await run_live(api, "deploy/llama", "-n", "serving")
    assert refused.exit_code == 3
    assert 'resources: ["pods"], verbs: ["list"]' in refused.stderr


async def test_of_a_live_inference_service_the_deployment_is_looked_at(api: FakeApi) -> None:
    service = yaml.safe_load(SERVICE)
    await api.put(INFERENCE_SERVICES, service)
    early = await run_live(api, "isvc/qwen", "-n", "serving")
    assert early.exit_code == 2
    assert "has no Deployment serving/qwen-predictor" in re.sub(r"\s+", " ", early.stderr.replace("│", " "))
    scale = {"spec": {"replicas": 2}, "status": {"replicas": 2, "selector": "app=isvc.qwen-predictor"}}
    await api.set_scale(DEPLOYMENTS, "serving", "qwen-predictor", scale)
    await api.put(PODS, started("a", 90))
    result = await run_live(api, "isvc/qwen", "-n", "serving")
    assert "90 s, measured on 1 pod " in result.stdout
    assert yaml.safe_load(result.stdout)["spec"]["scaleTargetRef"]["name"] == "qwen-predictor"


async def test_a_workload_that_the_cluster_has_not_is_told_with_where_to_look(api: FakeApi) -> None:
    result = await run_live(api, "sts/llama", "-n", "serving")
    assert result.exit_code == 3
    assert "namespace serving" in result.stderr
    assert "kubectl get statefulsets.apps -A" in result.stderr


def test_the_help_shows_each_way_to_use_it() -> None:
    text = re.sub(r"\s+", " ", run("--help").stdout)
    for way in ("init deployment/llama -n serving", "init deployment/llama -f -", "init --from -"):
        assert way in text
