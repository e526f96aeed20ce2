"""The configuration in force, and where each value comes from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scaler.targets import Setting, TriggerSettings, configuration
from tests.unit.targets.world import Scene, scaled_object

POLICIES = {
    "chat": {"policy": "ray-serve", "headroom": "10%"},
    "adaptive": {"policy": "adaptive", "headroom": "1"},
}


def settings(metadata: Mapping[str, str]) -> dict[str, Setting]:
    target = Scene().targets(policies=POLICIES).find("ns", "llama", metadata)
    return {setting.key: setting for setting in configuration(target)}


@pytest.mark.parametrize(
    ("metadata", "key", "value", "origin"),
    [
        ({"upscaleDelay": "9s"}, "upscaleDelay", "9s", "trigger"),
        ({"upscaleDelayFromEnv": "9s"}, "upscaleDelay", "9s", "trigger"),
        ({"policy": "ray-serve"}, "upscaleDelay", "3s", "preset ray-serve"),
        ({"policy": "ray-serve", "upscaleDelay": "9s"}, "upscaleDelay", "9s", "trigger"),
        ({"policy": "chat"}, "headroom", "10%", "policy chat"),
        ({"policy": "chat"}, "upscaleDelay", "3s", "policy chat"),
        ({}, "headroom", "1", "policy adaptive"),
        ({}, "lookBackPeriod", "10s", "policy adaptive"),
        ({"policy": "ray-serve"}, "lookBackPeriod", "30s", "default"),
        ({}, "metricsPort", "", "default"),
        ({}, "startingCredit", "true", "default"),
        ({}, "metricsPath", "/metrics", "default"),
        ({}, "rules", "", "default"),
    ],
)
def test_a_value_is_named_with_who_gave_it(metadata: Mapping[str, str], key: str, value: str, origin: str) -> None:
    setting = settings(metadata)[key]
    assert (setting.value, setting.origin) == (value, origin)


def test_every_key_of_a_trigger_is_told_with_its_meaning_but_the_limits_that_are_the_scaled_objects() -> None:
    told = settings({})
    assert told.keys() == TriggerSettings.keys().keys() - {"minReplicas", "maxReplicas"}
    assert all(setting.meaning for setting in told.values())


async def test_limits_and_tolerance_are_those_of_the_cluster_once_it_was_seen() -> None:
    scene = Scene()
    target = scene.target()
    await scene.tick(target)
    told = {setting.key: (setting.value, setting.origin) for setting in configuration(target)}
    assert told["minReplicaCount"] == ("1", "ScaledObject")
    assert told["maxReplicaCount"] == ("20", "ScaledObject")
    assert told["scaleUp.tolerance"] == ("0", "HPA")


def test_invalid_triggers_are_known_until_they_are_right() -> None:
    targets = Scene().targets()
    targets.show([scaled_object({"upscaleDelay": "soon"}), scaled_object({}, name="mistral")])
    (invalid,) = targets.invalid
    assert (invalid.namespace, invalid.name) == ("ns", "llama")
    assert "upscaleDelay: 'soon' is wrong" in invalid.error
    targets.show([scaled_object({"upscaleDelay": "5s"}), scaled_object({}, name="mistral")])
    assert targets.invalid == ()
