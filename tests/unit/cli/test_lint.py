"""`vllm-scaler lint`: every rule with manifests that it passes and manifests that it does not, and the command."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from scaler.cli.lint import lint
from scaler.cli.linting import RULES, Finding, Given, check

app = typer.Typer()
app.command()(lint)

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "k8s" / "examples"

GOOD = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llama, namespace: serving}
spec:
  scaleTargetRef: {name: llama}
  minReplicaCount: 1
  maxReplicaCount: 24
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp: {tolerance: "0", stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 24, periodSeconds: 15}]}
        scaleDown: {tolerance: "0", stabilizationWindowSeconds: 0}
  triggers:
    - type: external-push
      metadata: {scalerAddress: "vllm-scaler.keda.svc:9090"}
"""

WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: llama, namespace: serving}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 150
      containers:
        - name: vllm
          args: [--model=llama, --shutdown-timeout=120]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          lifecycle: {preStop: {sleep: {seconds: 15}}}
"""

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: by-hand, namespace: serving}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: OF}}
"""


def edited(text: str, changes: str) -> str:
    """`text` with values put in, or taken out where null. A path is keys and numbers: `spec.triggers.0.type`."""
    content = yaml.safe_load(text)
    for path, value in (yaml.safe_load(changes) or {}).items():
        *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
        inner = content
        for step in way:
            inner = inner.setdefault(step, {}) if isinstance(inner, dict) else inner[step]
        if value is None and isinstance(inner, dict):
            inner.pop(last, None)
        elif isinstance(inner, list) and last == len(inner):
            inner.append(value)
        else:
            inner[last] = value
    return yaml.safe_dump(content, sort_keys=False)


def metadata(words: str) -> str:
    return f"spec.triggers.0.metadata: {{scalerAddress: 'vllm-scaler.keda.svc:9090', {words}}}"


def behavior(path: str, value: str) -> str:
    return f"spec.advanced.horizontalPodAutoscalerConfig.behavior.{path}: {value}"


@dataclass(frozen=True)
class Case:
    """Edits of the good ScaledObject, a manifest beside it, and a part of what is told."""

    changes: str = ""
    told: str = ""
    beside: str = ""


def workload(changes: str, told: str = "") -> Case:
    return Case(beside=edited(WORKLOAD, changes), told=told)


def warm(changes: str, told: str = "") -> Case:
    return Case(metadata("warmReplicas: auto"), told, edited(WORKLOAD, changes))


def annotations(words: str) -> str:
    return f"spec.template.metadata: {{annotations: {{{words}}}}}"


CONTAINER = "spec.template.spec.containers.0"
LWS = "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet"

CASES: dict[str, tuple[list[Case], list[Case]]] = {
    "metadata": (
        [
            Case(metadata("targetOngoingRequests: '12', upscaleDelay: 3s, policy: ray-serve")),
            Case(metadata("targetOngoingRequestsFromEnv: TARGET")),  # known only in the cluster
            Case(metadata("enableTLS: 'true'")),
        ],
        [
            Case(metadata("upscaleDelays: 3s"), "upscaleDelays: unknown key"),
            Case(metadata("headroom: plenty"), "headroom: 'plenty' is wrong"),
            Case(metadata("upscaleDelaysFromEnv: DELAY"), "upscaleDelaysFromEnv: unknown key"),
            Case(metadata("minReplicas: '3'"), "minReplicas: '3' is wrong here"),
            Case(metadata("policy: chat, headroom: plenty"), "headroom: 'plenty' is wrong"),
            Case(metadata("rules: '+1 when queue_seconds >= 5; hurry'"), "rules"),
        ],
    ),
    "metadata-text": (
        [Case(metadata("targetOngoingRequests: '12'"))],
        [
            Case(metadata("targetOngoingRequests: 12"), "targetOngoingRequests: 12 is no text"),
            Case(metadata("startingCredit: false"), "startingCredit: false is no text"),
            Case(metadata("rules: [a]"), "rules is a mapping or a list"),
            Case(metadata("policy: null"), "policy: null is no text"),
        ],
    ),
    "scaler-address": (
        [Case(), Case(metadata("scalerAddress: 'dns:///vllm-scaler.keda.svc:9090'"))],
        [
            Case("spec.triggers.0.metadata: {policy: adaptive}", "no scalerAddress"),
            Case(metadata("scalerAddress: 'http://vllm-scaler.keda.svc:9090'"), "is no HOST:PORT"),
            Case(metadata("scalerAddress: vllm-scaler.keda.svc"), "'vllm-scaler.keda.svc' is no HOST:PORT"),
        ],
    ),
    "unknown-policy": (
        [Case(metadata("policy: pulse"))],
        [Case(metadata("policy: chat"), "policy 'chat' is no preset")],
    ),
    "unsafe-tls": (
        [Case(metadata("unsafeSsl: 'false'"))],
        [Case(metadata("unsafeSsl: 'true'"), "unchecked")],
    ),
    "one-trigger": (
        [Case()],
        [Case("spec.triggers.1: {type: cpu, metadata: {value: '80'}}", "2 triggers")],
    ),
    "average-value": (
        [Case(), Case("spec.triggers.0.metricType: AverageValue")],
        [
            Case("spec.triggers.0.metricType: Value", "metricType is 'Value'"),
            Case("spec.triggers.0.metricType: Utilization", "metricType is 'Utilization'"),
        ],
    ),
    "cached-metrics": (
        [Case(), Case("spec.triggers.0.useCachedMetrics: false")],
        [Case("spec.triggers.0.useCachedMetrics: true", "useCachedMetrics is on")],
    ),
    "scaling-modifiers": (
        [Case()],
        [Case("spec.advanced.scalingModifiers: {formula: 'a * 2', target: '1'}", "scalingModifiers are in use")],
    ),
    "min-above-max": (
        [Case("spec.minReplicaCount: 24")],
        [
            Case("spec.minReplicaCount: 25", "25 is above maxReplicaCount 24"),
            Case("{spec.minReplicaCount: 101, spec.maxReplicaCount: null}", "101 is above maxReplicaCount 100"),
        ],
    ),
    "max-left-out": (
        [Case()],
        [Case("spec.maxReplicaCount: null", "KEDA allows 100")],
    ),
    "idle-count": (
        [Case(), Case("spec.idleReplicaCount: 0")],
        [
            Case("{spec.idleReplicaCount: 0, spec.minReplicaCount: 0}", "idleReplicaCount 0 with minReplicaCount 0"),
            Case("{spec.idleReplicaCount: 1, spec.minReplicaCount: 3}", "idleReplicaCount 1 with minReplicaCount 3"),
        ],
    ),
    "schedule-above-max": (
        [Case(metadata("minReplicasSchedule: 'Mon-Fri 08:00-20:00 UTC = 24'"))],
        [Case(metadata("minReplicasSchedule: 'Mon-Fri 08:00-20:00 UTC = 25'"), "above maxReplicaCount 24")],
    ),
    "fallback-to-zero": (
        [Case(), Case("spec.fallback: {failureThreshold: 3, replicas: 2, behavior: currentReplicasIfHigher}")],
        [
            Case("spec.fallback: {failureThreshold: 3, replicas: 0}", "fallback.replicas is 0"),
            Case("spec.fallback: {failureThreshold: 3}", "fallback.replicas is 0"),
        ],
    ),
    "fallback-takes-away": (
        [
            Case("spec.fallback: {failureThreshold: 3, replicas: 2, behavior: currentReplicasIfHigher}"),
            Case("spec.fallback: {failureThreshold: 3, replicas: 2, behavior: currentReplicas}"),
        ],
        [
            Case("spec.fallback: {failureThreshold: 3, replicas: 2}", "behavior is static"),
            Case(
                "spec.fallback: {replicas: 2, behavior: currentReplicasIfLower}", "behavior is currentReplicasIfLower"
            ),
        ],
    ),
    "scale-to-zero": (
        [Case()],
        [
            Case("spec.minReplicaCount: 0", "minReplicaCount is 0"),
            Case("spec.minReplicaCount: null", "minReplicaCount is left out"),
            Case("spec.idleReplicaCount: 0", "idleReplicaCount is 0"),
        ],
    ),
    "initial-cooldown": (
        [Case(), Case("{spec.minReplicaCount: 0, spec.initialCooldownPeriod: 300}")],
        [
            Case("spec.minReplicaCount: 0", "initialCooldownPeriod is 0 s"),
            Case("{spec.minReplicaCount: 0, spec.initialCooldownPeriod: 60}", "initialCooldownPeriod is 60 s"),
        ],
    ),
    "cooldown": (
        [
            Case("spec.cooldownPeriod: 10"),  # not in use with a minimum of 1
            Case("{spec.minReplicaCount: 0, spec.cooldownPeriod: 300}"),
            Case("spec.minReplicaCount: 0"),  # KEDA's default is 300 s
        ],
        [Case("{spec.minReplicaCount: 0, spec.cooldownPeriod: 60}", "cooldownPeriod is 60 s")],
    ),
    "slow-activation": (
        [Case("spec.minReplicaCount: 0"), Case("spec.triggers.0.type: external")],
        [Case("{spec.minReplicaCount: 0, spec.triggers.0.type: external}", "every 30 s")],
    ),
    "tolerance": (
        [
            Case(),
            Case(f"{{spec.maxReplicaCount: 9, {behavior('scaleUp.tolerance', 'null')}}}"),
            Case(f"{metadata('toleranceMode: round-up')}\n{behavior('scaleUp.tolerance', 'null')}"),
            Case(behavior("scaleUp.tolerance", "0")),
        ],
        [
            Case(behavior("scaleUp.tolerance", "null"), "scaleUp has no tolerance"),
            Case(behavior("scaleDown.tolerance", "null"), "scaleDown has no tolerance"),
            Case(behavior("scaleUp.tolerance", "'0.05'"), "scaleUp has tolerance '0.05'"),
            Case("spec.advanced: null", "scaleUp has no tolerance"),
        ],
    ),
    "scale-up-stabilization": (
        [Case()],
        [Case(behavior("scaleUp.stabilizationWindowSeconds", "60"), "waits 60 s longer")],
    ),
    "scale-down-stabilization": (
        [Case()],
        [
            Case(behavior("scaleDown.stabilizationWindowSeconds", "120"), "waits 120 s, and downscaleDelay's 60 s"),
            Case(behavior("scaleDown.stabilizationWindowSeconds", "null"), "waits 300 s by default"),
        ],
    ),
    "scale-up-policies": (
        [Case(), Case(f"spec.maxReplicaCount: 5\n{behavior('scaleUp.policies', 'null')}")],
        [Case(behavior("scaleUp.policies", "null"), "from 1 to 24")],
    ),
    "direction-disabled": (
        [Case(behavior("scaleDown.selectPolicy", "Max"))],
        [Case(behavior("scaleDown.selectPolicy", "Disabled"), "scaleDown is disabled")],
    ),
    "no-scale-subresource": (
        [Case(), Case("spec.scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: llama}")],
        [
            Case(
                "spec.scaleTargetRef: {apiVersion: ray.io/v1, kind: RayCluster, name: llama}",
                "RayCluster cannot be a scale target",
            )
        ],
    ),
    "one-scaler-per-target": (
        [
            Case(),
            Case(beside=HPA.replace("OF", "other")),
            Case(beside=edited(GOOD, "{metadata.name: b, metadata.namespace: elsewhere}")),
        ],
        [
            Case(beside=HPA.replace("OF", "llama"), told="HorizontalPodAutoscaler by-hand"),
            Case(beside=edited(GOOD, "metadata.name: again"), told="ScaledObject llama"),
        ],
    ),
    "replicas-in-manifest": (
        [Case(), workload("{}"), workload("{spec.replicas: 3, metadata.name: other}")],
        [workload("spec.replicas: 3", "Deployment llama sets replicas: 3")],
    ),
    "readiness-probe": (
        [workload("{}")],
        [workload(f"{CONTAINER}.readinessProbe: null", "Deployment llama has no readinessProbe")],
    ),
    "drain": (
        [
            workload("{}"),
            workload(f"{CONTAINER}.lifecycle: null"),
            workload(f"{CONTAINER}.args: null"),
            workload(f"{{{CONTAINER}.args: null, {CONTAINER}.command: [sh, -c, vllm serve x --shutdown-timeout 60]}}"),
        ],
        [
            workload(f"{{{CONTAINER}.args: null, {CONTAINER}.lifecycle: null}}", "neither --shutdown-timeout nor"),
            workload(f"{{{CONTAINER}.args: [--shutdown-timeout=0], {CONTAINER}.lifecycle: null}}", "neither"),
            Case(
                "spec.scaleTargetRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: llama}",
                "LeaderWorkerSet llama has neither",
                f"{LWS}\nmetadata: {{name: llama, namespace: serving}}\n"
                "spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: vllm}]}}}}",
            ),
        ],
    ),
    "grace-period": (
        [workload("{}"), workload(f"{{spec.template.spec.terminationGracePeriodSeconds: null, {CONTAINER}.args: []}}")],
        [
            workload("spec.template.spec.terminationGracePeriodSeconds: 135", "after 135 s, and may need 135 s"),
            workload("spec.template.spec.terminationGracePeriodSeconds: null", "after 30 s, and may need 135 s"),
            workload(f"{{{CONTAINER}.args: [--shutdown-timeout, '200']}}", "after 150 s, and may need 215 s"),
            workload(
                f"{CONTAINER}.lifecycle: {{preStop: {{exec: {{command: [sh, -c, 'curl x; sleep 60; sleep 5']}}}}}}",
                "after 150 s, and may need 185 s",
            ),
        ],
    ),
    "grace-period-cut": (
        [workload("{}"), workload("spec.template.spec.terminationGracePeriodSeconds: 600")],
        [workload("spec.template.spec.terminationGracePeriodSeconds: 900", "Deployment llama asks for 900 s to end")],
    ),
    "kept-for-ever": (
        [
            workload("{}"),
            workload(annotations("karpenter.sh/do-not-disrupt: 'false'")),
            workload(annotations("cluster-autoscaler.kubernetes.io/safe-to-evict: 'true'")),
        ],
        [
            workload(annotations("karpenter.sh/do-not-disrupt: 'true'"), "sets karpenter.sh/do-not-disrupt: true"),
            workload(annotations("cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'"), "safe-to-evict: false"),
        ],
    ),
    "no-requests": (
        [
            workload("{}"),
            Case(metadata("warmReplicas: '0'"), beside=WORKLOAD),
            warm(f"{CONTAINER}.resources: {{limits: {{nvidia.com/gpu: 1}}}}"),
            warm("spec.template.spec.resources: {requests: {cpu: 1}}"),
        ],
        [
            warm("{}", "Deployment llama requests no resources"),
            warm(f"{CONTAINER}.resources: {{requests: {{}}}}", "Deployment llama requests no resources"),
        ],
    ),
}


def findings(case: Case) -> list[Finding]:
    text = edited(GOOD, case.changes) + "---\n" + case.beside
    return list(check([("world.yaml", text)], Given()).findings)


def _each(which: int) -> list[Any]:
    return [
        pytest.param(rule, case, id=f"{rule}-{number}")
        for rule, both in CASES.items()
        for number, case in enumerate(both[which])
    ]


def test_every_rule_has_cases() -> None:
    assert set(CASES) == {rule.name for rule in RULES}
    assert all(rule.why and rule.why.endswith(".") for rule in RULES)


@pytest.mark.parametrize(("rule", "case"), _each(0))
def test_what_is_right_is_let_pass(rule: str, case: Case) -> None:
    assert [finding for finding in findings(case) if finding.rule == rule] == []


@pytest.mark.parametrize(("rule", "case"), _each(1))
def test_what_is_wrong_is_found_and_told(rule: str, case: Case) -> None:
    told = [finding.what for finding in findings(case) if finding.rule == rule]
    assert any(case.told in what for what in told), told


def test_the_good_scaled_object_has_no_finding() -> None:
    assert findings(Case(beside=WORKLOAD)) == []


def test_every_metadata_error_is_told_at_once() -> None:
    case = Case(metadata("upscaleDelays: 3s, headroom: plenty, targetKvCacheUsage: '80'"))
    found = {finding.what.split(":")[0]: finding.right for finding in findings(case)}
    assert found == {
        "upscaleDelays": "did you mean upscaleDelay?",
        "headroom": "'2' or '10%'",
        "targetKvCacheUsage": "'0.8'",
    }


def test_a_start_up_time_that_is_known_sets_the_bar() -> None:
    text = edited(GOOD, "{spec.minReplicaCount: 0, spec.initialCooldownPeriod: 90, spec.cooldownPeriod: 90}")
    rules = {finding.rule for finding in check([("f", text)], Given(start_up_s=60)).findings}
    assert rules == {"scale-to-zero"}


def test_the_operators_policies_are_known_when_given() -> None:
    text = edited(GOOD, metadata("policy: chat"))
    assert check([("f", text)], Given(policies={"chat": {"headroom": "2"}})).findings == ()
    (finding,) = check([("f", text)], Given(policies={"talk": {}})).findings
    assert (finding.rule, "talk" in finding.right) == ("metadata", True)


@pytest.mark.parametrize(
    ("trigger", "address", "ours"),
    [
        ("{type: external, metadata: {scalerAddress: 'vllm-scaler.keda:9090'}}", None, True),
        ("{type: external, metadata: {scalerAddress: 'llm.keda:9090', targetQueueSeconds: 5s}}", None, True),
        ("{type: external, metadata: {scalerAddress: 'other.keda:9090', threshold: '5'}}", None, False),
        ("{type: external, metadata: {scalerAddress: 'llm.keda:9090', polisy: x}}", "llm.keda:9090", True),
        ("{type: external, metadata: {scalerAddress: 'vllm-scaler.keda:9090'}}", "llm.keda:9090", False),
        ("{type: prometheus, metadata: {serverAddress: 'http://vllm-scaler', threshold: '5'}}", None, False),
    ],
)
def test_scaled_objects_of_other_scalers_are_skipped_with_a_note(trigger: str, address: str | None, ours: bool) -> None:
    text = edited(GOOD, f"spec.triggers.0: {trigger}")
    report = check([("f", text)], Given(scaler_address=address))
    assert (report.checked, len(report.skipped)) == ((1, 0) if ours else (0, 1))


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _paths(inner, (*path, key))


@settings(deadline=None)
@given(data=st.data())
def test_no_manifest_however_odd_breaks_the_check(data: st.DataObject) -> None:
    odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    odd = st.recursive(odd, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(odd, inner, max_size=2))
    documents = [yaml.safe_load(GOOD), yaml.safe_load(WORKLOAD)]
    documents[0]["spec"]["fallback"] = {"replicas": 1}
    for document in documents:
        way = data.draw(st.sampled_from(list(_paths(document))[1:]))
        inner = document
        for step in way[:-1]:
            inner = inner[step]
        inner[way[-1]] = copy.deepcopy(data.draw(odd))
    report = check([("f", yaml.safe_dump_all(documents))], Given())
    assert all(finding.place.line >= 1 and finding.what for finding in report.findings)


# ---- the command ----


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


BAD_TEXT = """\
# two objects; the second is wrong in two lines
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: llama
spec:
  scaleTargetRef: {name: llama}
  minReplicaCount: 1
  maxReplicaCount: 4
  fallback:
    failureThreshold: 3
    replicas: 0
    behavior: currentReplicas
  triggers:
    - type: external
      metadata:
        scalerAddress: vllm-scaler.keda.svc:9090
        headrooms: "2"
"""


def test_findings_name_file_and_line_and_say_why_and_what_is_right(tmp_path: Path) -> None:
    file = written(tmp_path, "bad.yaml", BAD_TEXT)
    result = run(file)
    assert result.exit_code == 1
    assert f"{file}:16: error: default/llama: fallback.replicas is 0  [fallback-to-zero]" in result.stdout
    assert f"{file}:22: error: default/llama: headrooms: unknown key  [metadata]" in result.stdout
    assert "right: did you mean headroom?" in result.stdout
    assert "INVALID_ARGUMENT" in result.stdout  # the reason
    assert result.stdout.endswith("1 ScaledObject checked: 2 errors, 0 warnings, 0 hints\n")


def test_json_is_for_machines(tmp_path: Path) -> None:
    result = run(written(tmp_path, "bad.yaml", BAD_TEXT), "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (answer["checked"], answer["skipped"]) == (1, [])
    first = answer["findings"][0]
    assert (first["line"], first["severity"], first["rule"]) == (16, "error", "fallback-to-zero")
    assert first["name"] == "default/llama"
    assert all(first[key] for key in ("file", "what", "why", "right"))


def test_clean_files_pass(tmp_path: Path) -> None:
    result = run(written(tmp_path, "good.yaml", GOOD), "--strict")
    assert result.exit_code == 0
    assert result.stdout == "1 ScaledObject checked: 0 errors, 0 warnings, 0 hints\n"


def test_warnings_fail_only_when_strict_and_rules_can_be_left_out(tmp_path: Path) -> None:
    file = written(tmp_path, "zero.yaml", edited(GOOD, "{spec.minReplicaCount: 0, spec.initialCooldownPeriod: 600}"))
    assert run(file).exit_code == 0
    assert run(file, "--strict").exit_code == 1
    assert run(file, "--strict", "--ignore", "scale-to-zero").exit_code == 0


def test_standard_input_and_folders_and_lists_are_read(tmp_path: Path) -> None:
    as_list = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(GOOD)]})
    written(tmp_path, "deep/inside/list.yml", as_list)
    written(tmp_path, "good.yaml", edited(GOOD, "{metadata.name: b, spec.scaleTargetRef.name: b}"))
    written(tmp_path, "notes.txt", "no: [yaml")
    result = run(str(tmp_path), "-", stdin=edited(GOOD, "{metadata.name: c, spec.scaleTargetRef.name: c}"))
    assert result.exit_code == 0
    assert "3 ScaledObjects checked" in result.stdout


def test_a_folder_without_manifests_is_no_success(tmp_path: Path) -> None:
    written(tmp_path, "values.json", "{}")
    result = run(str(tmp_path))
    assert result.exit_code == 2
    assert "no .yaml or .yml file is in" in " ".join(result.stderr.replace("│", " ").split())


def test_what_does_not_name_this_scaler_is_noted(tmp_path: Path) -> None:
    text = edited(GOOD, "spec.triggers.0: {type: cpu, metadata: {value: '80'}}")
    result = run(written(tmp_path, "cpu.yaml", text))
    assert result.exit_code == 0
    assert "cpu.yaml:1: skipped: serving/llama does not name this scaler" in result.stdout


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: {{ .Values.a }}",
        "a: !Ref b",
        "a: \x07",
        "- a\nb: c",
        "when: 2026-99-99",
    ],
)
def test_a_file_that_is_no_yaml_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    result = run("-", stdin=text)
    assert result.exit_code == 1
    assert "<stdin>:" in result.stdout
    assert "error: no YAML" in result.stdout


MADE_BY_YAML = {
    "10:30": "10:30 is no text: YAML makes 630 of it",
    "on": "on is no text: YAML makes true of it",
    "off": "off is no text: YAML makes false of it",
    "yes": "yes is no text: YAML makes true of it",
    "no": "no is no text: YAML makes false of it",
    "010": "010 is no text: YAML makes 8 of it",
    "0x1F": "0x1F is no text: YAML makes 31 of it",
    "1_000": "1_000 is no text: YAML makes 1000 of it",
    "2026-12-24": "2026-12-24 is no text",
    ".inf": ".inf is no text: YAML makes inf of it",
    "~": "~ is no text: YAML makes nothing of it",
    "12": "12 is no text",
    "1.50": "1.50 is no text: YAML makes 1.5 of it",
}


@pytest.mark.parametrize(("value", "told"), MADE_BY_YAML.items())
def test_what_yaml_makes_of_a_value_is_told_with_its_line_and_its_quotes(value: str, told: str) -> None:
    text = BAD_TEXT.replace('headrooms: "2"', f"upscaleDelay: {value}")
    (finding,) = (f for f in check([("f.yaml", text)], Given()).findings if f.rule == "metadata-text")
    assert str(finding.place) == "f.yaml:22"
    assert finding.what == f"upscaleDelay: {told}"
    assert finding.right == f'in quotes: upscaleDelay: "{value}"'
    for quoted in (f"'{value}'", f'"{value}"'):
        right = BAD_TEXT.replace('headrooms: "2"', f"upscaleDelay: {quoted}")
        assert not [f for f in check([("f.yaml", right)], Given()).findings if f.rule == "metadata-text"]


def test_a_value_is_checked_as_it_was_written_and_not_as_yaml_made_it() -> None:
    text = BAD_TEXT.replace('headrooms: "2"', "upscaleDelay: 10:30")
    told = [finding.what for finding in check([("f.yaml", text)], Given()).findings if finding.rule == "metadata"]
    assert told == ["upscaleDelay: '10:30' is wrong (not a duration)"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'headrooms: "2"',
            'headroom: "2"\n        headroom: "3"',
            "f.yaml:23: headroom stands there twice, first in",
        ),
        (
            "  maxReplicaCount: 4",
            "  maxReplicaCount: 4\n  maxReplicaCount: 5",
            "f.yaml:14: maxReplicaCount",
        ),
    ],
)
def test_a_key_that_stands_there_twice_is_an_error_with_both_lines(old: str, new: str, told: str) -> None:
    found = [f for f in check([("f.yaml", BAD_TEXT.replace(old, new))], Given()).findings if f.rule == "yaml"]
    (shown,) = (f"{finding.place}: {finding.what}" for finding in found)
    assert shown.startswith(told)


ENDLESS = "x: &p0 [ha]\ny:\n" + "".join(f"- &p{i} [{', '.join([f'*p{i - 1}'] * 9)}]\n" for i in range(1, 40))
PLACES = (
    *("apiVersion", "kind", "metadata.name", "metadata.namespace", "spec", "spec.triggers", "spec.triggers.0"),
    *("spec.triggers.0.type", "spec.triggers.0.metadata", "spec.triggers.0.metadata.scalerAddress"),
    *("spec.triggers.0.metadata.rules", "spec.triggers.0.metadata.policy", "spec.triggers.0.metricType"),
    *("spec.minReplicaCount", "spec.maxReplicaCount", "spec.idleReplicaCount", "spec.cooldownPeriod"),
    *("spec.scaleTargetRef", "spec.scaleTargetRef.name", "spec.scaleTargetRef.kind", "spec.advanced", "spec.fallback"),
    *(f"spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp{key}" for key in ("", ".tolerance", ".policies")),
)


@pytest.mark.parametrize("value", ["*p39", ".inf", ".nan", "'" + "x" * 100_000 + "'", "-1", "1e400", "{}", "[]", "~"])
def test_whatever_stands_anywhere_is_checked_to_the_end_in_few_words(value: str) -> None:
    for place in PLACES:
        text = edited(GOOD, f"{place}: PUT-HERE").replace("PUT-HERE", value).strip()
        indented = text.replace("\n", "\n  ")
        report = check([("f.yaml", f"{ENDLESS}kind: List\nitems:\n- {indented}\n")], Given())
        for finding in report.findings:
            assert finding.rule != "yaml"
            assert max(map(len, (finding.name, finding.what, finding.right))) <= 1000


def work(files: list[tuple[str, str]]) -> int:
    """How many calls a check makes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        check(files, Given())
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("same", [False, True], ids=["targets of their own", "one target for all"])
def test_twice_as_many_manifests_are_twice_the_work(same: bool) -> None:
    def files(count: int) -> list[tuple[str, str]]:
        both = f"{GOOD}---{HPA.replace('OF', 'llama') if same else WORKLOAD}"
        names = ["llama" if same else f"llama-{n}" for n in range(count)]
        return [("f.yaml", "---".join(both.replace("name: llama", f"name: {name}") for name in names))]

    once, twice = work(files(40)), work(files(80))
    assert twice < 2.2 * once


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["missing.yaml"], "missing.yaml: No such file"),
        (["/dev/zero"], "more than 64 MB"),
        ([], "Missing argument"),
        (["-", "--ignore", "scale-to-nought"], "there is no rule 'scale-to-nought'"),
        (["-", "--start-up-time", "soon"], "'soon' is wrong"),
        (["-", "--policies", "missing.yaml"], "missing.yaml"),
    ],
)
def test_wrong_use_is_told_with_status_2(words: list[str], told: str) -> None:
    result = run(*words, stdin=GOOD)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", " ").split())


def test_a_file_of_policies_is_checked_against(tmp_path: Path) -> None:
    policies = written(tmp_path, "policies.yaml", "chat:\n  headroom: 10%\n")
    file = written(tmp_path, "chat.yaml", edited(GOOD, metadata("policy: chat")))
    assert run(file, "--strict").exit_code == 1
    assert run(file, "--strict", "--policies", policies).exit_code == 0


def test_the_examples_pass() -> None:
    result = run(str(EXAMPLES), "--strict", "--json", "--start-up-time", "3m")
    answer = json.loads(result.stdout)
    assert answer["findings"] == []
    assert answer["skipped"] == []
    assert answer["checked"] == len([f for f in EXAMPLES.rglob("*.yaml") if "kind: ScaledObject" in f.read_text()])
    assert result.exit_code == 0


def test_the_readmes_scaled_object_is_right(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shown = [block for block in blocks if "kind: ScaledObject" in block]
    assert shown
    for block in shown:
        assert run("-", "--strict", stdin=block).exit_code == 0
