"""The examples are what their map says: each is listed, and each model is served with care."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "k8s" / "examples"
TRIGGER = {"type": "external-push", "metricType": "AverageValue"}
ADDRESS = "vllm-scaler.keda.svc:9090"
READMES = sorted(EXAMPLES.rglob("README.md"))

Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    files = [file for file in EXAMPLES.rglob("*.yaml") if not file.stem.endswith("-values")]
    return [manifest for file in files for manifest in yaml.safe_load_all(file.read_text())]


def server(manifest: Manifest) -> Manifest:
    """The pod spec of what serves a model."""
    spec: Manifest = manifest["spec"]
    match manifest["kind"]:
        case "LeaderWorkerSet":
            return dict(spec["leaderWorkerTemplate"]["leaderTemplate"]["spec"])
        case "InferenceService":
            return dict(spec["predictor"])
        case _:
            return dict(spec["template"]["spec"])


SERVERS = [
    manifest
    for manifest in manifests()
    if manifest["kind"] in ("Deployment", "StatefulSet", "LeaderWorkerSet", "InferenceService")
]


@pytest.mark.parametrize("manifest", SERVERS, ids=lambda each: each["metadata"]["name"])
def test_a_model_is_started_watched_and_drained_with_care(manifest: Manifest) -> None:
    pod = server(manifest)
    (container,) = pod["containers"]
    assert container["resources"]["requests"]["nvidia.com/gpu"] == container["resources"]["limits"]["nvidia.com/gpu"]
    assert container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] >= 300
    assert container["readinessProbe"]["periodSeconds"] <= 2
    shutdown = [int(word.partition("=")[2]) for word in container["args"] if word.startswith("--shutdown-timeout=")]
    drain = container["lifecycle"]["preStop"]["sleep"]["seconds"] + max(shutdown, default=60)
    assert pod["terminationGracePeriodSeconds"] >= drain + 10


@pytest.mark.parametrize("manifest", SERVERS, ids=lambda each: each["metadata"]["name"])
def test_nodes_are_drained_a_few_replicas_at_a_time(manifest: Manifest) -> None:
    names = (manifest["metadata"]["name"], manifest["metadata"]["namespace"])
    (budget,) = (
        each["spec"]
        for each in manifests()
        if each["kind"] == "PodDisruptionBudget" and (each["metadata"]["name"], each["metadata"]["namespace"]) == names
    )
    assert "maxUnavailable" in budget  # minAvailable: 1 would block every drain at one replica
    labels = budget["selector"]["matchLabels"]
    made_by_the_controller = {"LeaderWorkerSet", "InferenceService"}
    if manifest["kind"] not in made_by_the_controller:
        assert labels.items() <= manifest["spec"]["template"]["metadata"]["labels"].items()


def test_every_scaled_object_has_the_one_trigger_that_readme_and_notes_show() -> None:
    scaled_objects = [each for each in manifests() if each["kind"] == "ScaledObject"]
    assert len(scaled_objects) >= 15
    readme = (ROOT / "README.md").read_text()
    (shown,) = (
        yaml.safe_load(block)
        for block in re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
        if "kind: ScaledObject" in block
    )
    for each in [*scaled_objects, shown]:
        (trigger,) = each["spec"]["triggers"]
        assert trigger.items() >= TRIGGER.items()
        assert trigger["metadata"]["scalerAddress"] == ADDRESS
    notes = (ROOT / "k8s" / "chart" / "templates" / "NOTES.txt").read_text()
    assert all(f"{key}: {value}" in notes for key, value in TRIGGER.items())


def test_the_map_lists_every_example() -> None:
    listed = set(re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text()))
    for file in EXAMPLES.rglob("*.yaml"):
        assert any(str(path) in listed for path in (file.relative_to(EXAMPLES), file.parent.relative_to(EXAMPLES)))


@pytest.mark.parametrize("readme", READMES, ids=lambda file: str(file.parent.relative_to(ROOT)))
def test_what_a_readme_points_at_is_there(readme: Path) -> None:
    text = readme.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    paths = re.findall(r"(?<= )k8s/\S+", text)
    assert links or paths
    assert all((readme.parent / link).exists() for link in links)
    assert all((ROOT / path.rstrip("`,")).exists() for path in paths)
