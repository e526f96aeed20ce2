"""Which targets there are: found by watch or by KEDA's call, changed, made invalid, ended."""

from __future__ import annotations

import asyncio

import pytest

from scaler.targets import SettingsError, parse_trigger, trigger_id
from scaler.targets.targets import SUPERSEDED_AFTER_S
from tests.unit.targets.world import ADAPTIVE, SIMPLE, Scene, page, scaled_object

WRONG = {**SIMPLE, "targetOngoingRequests": "many", "upscaleDeley": "3s"}


def test_an_rpc_for_an_unknown_target_begins_it_and_finds_it_again() -> None:
    targets = Scene().targets()
    target = targets.find("ns", "llama", SIMPLE)
    assert targets.find("ns", "llama", {**SIMPLE, "scalerAddress": "x:1"}) is target
    assert list(targets) == [target]


@pytest.mark.parametrize("name", ["", "n" * 254, "n" * 100_000, "Llama", "a/b", "a\nb", "-a", "a_b", "é"])
def test_what_cannot_be_an_objects_name_is_refused_and_not_kept(name: str) -> None:
    targets = Scene().targets()
    for namespace, scaled_object_name, key in ((name, "llama", "namespace"), ("ns", name, "name")):
        for metadata in (SIMPLE, WRONG):
            with pytest.raises(
                SettingsError, match=rf"^{key}: '.* is wrong \(no name that Kubernetes allows\)"
            ) as error:
                targets.find(namespace, scaled_object_name, metadata)
            assert len(str(error.value)) < 300
        with pytest.raises(LookupError) as unknown:
            targets.get(namespace, scaled_object_name)
        assert len(str(unknown.value)) < 300
    assert len(targets) == len(targets.invalid) == 0


def test_the_longest_name_that_kubernetes_allows_is_served() -> None:
    assert Scene().targets().find("ns", "n" * 253, SIMPLE).name == "n" * 253


def test_invalid_metadata_name_every_problem_with_value_and_remedy() -> None:
    with pytest.raises(SettingsError) as caught:
        Scene().targets().find("ns", "llama", WRONG)
    text = str(caught.value)
    assert len(caught.value.problems) == 2
    assert "targetOngoingRequests: 'many'" in text
    assert "did you mean upscaleDelay?" in text


async def test_a_trigger_that_becomes_invalid_keeps_the_last_valid_configuration() -> None:
    scene = Scene()
    targets = scene.targets()
    targets.show([scaled_object(SIMPLE)])
    target = targets.get("ns", "llama")
    scene.everywhere(page(0, 10))
    await scene.tick(target)
    targets.show([scaled_object(WRONG)])
    assert targets.find("ns", "llama", WRONG) is target
    assert any("last valid ones stay in force" in warning for warning in target.warnings)
    targets.show([scaled_object(SIMPLE)])
    assert targets.get("ns", "llama") is target
    assert target.warnings == ()


def test_the_last_valid_configuration_stays_whatever_keda_still_asks_with() -> None:
    targets = Scene().targets()
    targets.show([scaled_object(SIMPLE)])
    target = targets.get("ns", "llama")
    assert targets.find("ns", "llama", WRONG) is target  # KEDA knows before the watch does …
    assert targets.find("ns", "llama", SIMPLE) is target  # … and asks once more with what it remembers
    for _ in range(2):
        targets.show([scaled_object(WRONG), scaled_object(SIMPLE, name="other")])
        assert target.invalid
        assert targets.find("ns", "llama", SIMPLE) is target
        assert targets.find("ns", "llama", WRONG) is target


async def test_a_changed_trigger_takes_effect_and_goes_on_from_the_count() -> None:
    scene = Scene()
    targets = scene.targets()
    targets.show([scaled_object(SIMPLE)])
    scene.everywhere(page(20, 20))
    await scene.tick(targets.get("ns", "llama"))
    targets.show([scaled_object({**SIMPLE, "targetOngoingRequests": "40"})])
    target = targets.get("ns", "llama")
    await scene.tick(target)
    assert target.settings.target_ongoing_requests == 40
    assert target.answer() == 8.0  # what was decided before, held by the downscale delay


def test_two_triggers_and_two_scaled_objects_keep_apart() -> None:
    targets = Scene().targets()
    targets.show([scaled_object(SIMPLE, ADAPTIVE), scaled_object(SIMPLE, name="other")])
    assert len(targets) == 3
    with pytest.raises(LookupError, match="name one of them"):
        targets.get("ns", "llama")
    assert targets.get("ns", "llama", trigger_id(ADAPTIVE)).policy_name == "adaptive"


def test_a_scaled_object_that_goes_ends_its_target() -> None:
    targets = Scene().targets()
    targets.show([scaled_object(SIMPLE)])
    targets.show([])
    assert len(targets) == 0
    with pytest.raises(LookupError, match="no target ns/llama"):
        targets.get("ns", "llama")


def test_an_invalid_trigger_is_said_when_asked_for() -> None:
    targets = Scene().targets()
    targets.show([scaled_object(WRONG)])
    with pytest.raises(LookupError, match="its trigger is invalid"):
        targets.get("ns", "llama")


def test_one_good_trigger_beside_an_invalid_one_is_served_unharmed() -> None:
    targets = Scene().targets()
    targets.show([scaled_object(SIMPLE, WRONG)])
    assert targets.get("ns", "llama").warnings == ()
    with pytest.raises(SettingsError):
        targets.find("ns", "llama", WRONG)


def test_metadata_from_the_environment_are_left_to_keda_which_knows_the_values() -> None:
    targets = Scene().targets()
    in_cluster = {"targetOngoingRequestsFromEnv": "TARGET"}
    targets.show([scaled_object(in_cluster)])
    assert len(targets) == 0
    target = targets.find("ns", "llama", {"targetOngoingRequestsFromEnv": "7"})
    targets.show([scaled_object(in_cluster)])
    assert target.settings.target_ongoing_requests == 7
    assert list(targets) == [target]


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"policy": "adaptiv"}, "policy: 'adaptiv' is wrong"),
        ({"engine": "vlm"}, "known are"),
        ({"metricsPath": "metrics"}, "a path starts with /"),
        ({"metricsPort": "0"}, "metricsPort: '0' is wrong"),
        ({"minReplicas": "1"}, "minReplicaCount in the ScaledObject"),
        ({"endpoints": "127.0.0.1:1", "minReplicas": "3", "maxReplicas": "2"}, "above maxReplicas"),
        ({"endpoints": "127.0.0.1:1", "minReplicas": "101"}, "above maxReplicas '100', the default"),
        ({"endpoints": "127.0.0.1:1", "maxReplicas": "2147483648"}, "maxReplicas: '2147483648' is wrong"),
        ({"endpoints": "127.0.0.1:1", "minReplicas": "9" * 400}, "minReplicas: '9{79}…' is wrong"),
        ({"targetOngoingRequests": "nan"}, "targetOngoingRequests: 'nan' is wrong"),
        ({"staleness": "-5s"}, "staleness: '-5s' is wrong"),
    ],
)
def test_each_wrong_value_is_refused_with_what_would_be_right(metadata: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_trigger(metadata)


def test_endpoints_are_refused_by_a_server_that_does_not_allow_them() -> None:
    with pytest.raises(SettingsError, match=r"endpoints: '127\.0\.0\.1:1' is wrong"):
        Scene().targets().find("ns", "llama", {**SIMPLE, "endpoints": "127.0.0.1:1"})


def test_an_operators_policy_builds_on_a_preset_and_metadata_win() -> None:
    policies = {"house": {"policy": "ray-serve", "downscaleDelay": "10m", "targetOngoingRequests": "20"}}
    settings = parse_trigger({"policy": "house", "targetOngoingRequests": "30"}, policies)
    assert (settings.target_ongoing_requests, settings.downscale_delay_s, settings.upscale_delay_s) == (30, 600, 3)


def test_of_several_that_no_watch_shows_the_last_asked_for_is_explained() -> None:
    scene = Scene()
    targets = scene.targets()
    first = targets.find("ns", "llama", SIMPLE)
    scene.clock.now += 1.0
    second = targets.find("ns", "llama", ADAPTIVE)
    assert targets.get("ns", "llama") is second
    scene.clock.now += 1.0
    targets.find("ns", "llama", SIMPLE)
    assert targets.get("ns", "llama") is first


async def test_a_superseded_trigger_goes_on_for_as_long_as_a_stream_uses_it_and_ends_soon_after() -> None:
    scene = Scene()
    targets = scene.targets()
    before, after = {**SIMPLE}, {**SIMPLE, "targetOngoingRequests": "5"}
    targets.show([scaled_object(before)])
    old = targets.find("ns", "llama", before)
    running = asyncio.create_task(targets.run())
    with old.asking.stream():
        targets.show([scaled_object(after)])
        await scene.clock.passes(3 * SUPERSEDED_AFTER_S)
        assert old in list(targets)
    await scene.clock.passes(2 * SUPERSEDED_AFTER_S)
    assert [target.settings.target_ongoing_requests for target in targets] == [5]
    running.cancel()


def test_a_superseded_trigger_is_told_by_its_name_and_the_one_in_its_place_without() -> None:
    targets = Scene().targets()
    targets.show([scaled_object(SIMPLE)])
    old = targets.get("ns", "llama")
    with old.asking.stream():
        targets.show([scaled_object({**SIMPLE, "targetOngoingRequests": "5"})])
        assert targets.get("ns", "llama").settings.target_ongoing_requests == 5
        assert targets.get("ns", "llama", old.trigger) is old


def test_a_superseded_trigger_that_no_stream_uses_ends_at_once() -> None:
    targets = Scene().targets()
    targets.show([scaled_object(SIMPLE)])
    targets.show([scaled_object({**SIMPLE, "targetOngoingRequests": "5"})])
    assert [target.settings.target_ongoing_requests for target in targets] == [5]


def test_why_a_trigger_is_refused_can_be_told_without_asking_for_it() -> None:
    targets = Scene().targets()
    wrong = {**SIMPLE, "upscaleDelay": "soon"}
    targets.show([scaled_object(wrong), scaled_object(SIMPLE, name="qwen")])
    assert "upscaleDelay" in str(targets.refusal("ns", "llama", wrong))
    assert targets.refusal("ns", "qwen", SIMPLE) is None
    assert not any(target.asking.ever for target in targets)
