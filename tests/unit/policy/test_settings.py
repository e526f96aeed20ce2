"""Settings from metadata: zero keys are right, and every wrong one is named with what would be right."""

from __future__ import annotations

import pytest

from scaler.policy import PolicySettings, SettingsError
from scaler.policy.parsing import parse, parse_amount, parse_duration, parse_step_limit
from scaler.policy.presets import DEFAULT, PRESETS, policy_name, with_policy


def problems(metadata: dict[str, object], known: tuple[str, ...] = ()) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as error:
        parse(PolicySettings, metadata, known)
    return error.value.problems


DURATIONS = {
    "300": 300.0,
    "300s": 300.0,
    "5m": 300.0,
    "1.5h": 5400.0,
    "500ms": 0.5,
    "1d": 86400.0,
    " 5 m ": 300.0,
    300: 300.0,
    0.5: 0.5,
}


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_durations_read_as_people_write_them(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 minutes", "1h30m", "nan", "inf", "1e3", True, None])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_amounts_and_step_limits_read_and_print_alike() -> None:
    assert [str(parse_amount(text)) for text in ("2", "10%", "2.5 %", "2147483647")] == [
        "2",
        "10%",
        "2.5%",
        "2147483647",
    ]
    assert [str(parse_step_limit(text)) for text in ("4/15s", "100%/1m")] == ["4/15s", "100%/60s"]


@pytest.mark.parametrize("text", ["4", "4/", "/15s", "0/15s", "4/0s", "-4/15s", "4/15s/2", "many/1m"])
def test_a_wrong_step_limit_is_refused(text: str) -> None:
    (problem,) = problems({"upscaleLimit": text})
    assert problem.startswith(f"upscaleLimit: '{text}' is wrong")
    assert "'4/15s' or '100%/1m'" in problem


@pytest.mark.parametrize("key", ["lookAhead", "warmReplicas", "maxNodeProvisionTime"])
def test_auto_may_stand_in_spaces_like_any_other_value(key: str) -> None:
    assert parse(PolicySettings, {key: " auto\n"}) == parse(PolicySettings, {key: "auto"})


def test_no_key_at_all_is_a_good_configuration() -> None:
    assert parse(PolicySettings, {}).target_ongoing_requests is None


def test_every_key_has_a_description_and_an_example_that_is_right() -> None:
    for key, field in PolicySettings.keys().items():
        assert field.description or key == "toleranceMode"
        assert field.examples
        for example in field.examples:
            parse(PolicySettings, {key: str(example)})


# key and value: what the problem must say besides naming both
WRONG = {
    ("targetOngoingRequests", "twelve"): "right is, for instance, '12'",
    ("targetOngoingRequests", "0"): "greater than or equal to 0.01",
    ("targetOngoingRequests", "-3"): "greater than or equal to 0.01",
    ("targetOngoingRequests", "nan"): "finite",
    ("targetOngoingRequests", "inf"): "finite",
    ("targetKvCacheUsage", "80"): "less than or equal to 1",
    ("smoothingFactor", "1.5"): "less than or equal to 1",
    ("smoothingFactor", "NaN"): "right is, for instance, '0.6'",
    ("upscalingFactor", "Infinity"): "finite",
    ("upscaleDelay", "3 sec"): "not a duration",
    ("downscaleDelay", "-1"): "not a duration",
    ("lookAhead", "later"): "'auto' or '60s'",
    ("headroom", "ten"): "neither a count nor a percentage",
    ("warmReplicas", "automatic"): "'auto' or '2' or '25%'",
    ("warmReplicas", "30000%"): "more than 10,000 %",
    ("delayMode", "stabilisation"): "'stabilization' or 'consecutive'",
    ("utilization", "cpu"): "'slots'",
    ("startingCredit", "perhaps"): "'true'",
    ("metricsInterval", "10ms"): "greater than or equal to 0.1",
    ("metricsInterval", "2h"): "less than or equal to 60",
    ("toleranceMode", "up"): "'round-up'",
    ("maxNumSeqs", "0.5"): "a valid integer",
    ("maxNumSeqs", "0"): "greater than or equal to 1",
    ("headroom", "3000000000"): "more than 2,147,483,647",
    ("headroom", "20000%"): "more than 10,000 %",
    ("downscaleDelay", "2d"): "less than or equal to 86400",
    ("downscaleDelay", "400d"): "longer than a year",
    ("lookBackPeriod", "2h"): "less than or equal to 3600",
    ("upscaleLimit", "4/400d"): "longer than a year",
    ("rules", "+1 when waiting > 1 for 400d"): "a duration such as 90s or 5m",
    ("rules", "+3000000000 when waiting > 1"): "more than 2,147,483,647",
    ("minReplicasSchedule", "9:00-9:30 UTC = 3000000000"): "more than 2,147,483,647",
}


@pytest.mark.parametrize(("wrong", "right"), WRONG.items())
def test_a_wrong_value_names_key_value_and_what_would_be_right(wrong: tuple[str, str], right: str) -> None:
    key, value = wrong
    (problem,) = problems({key: value})
    assert problem.startswith(f"{key}: ")
    assert value in problem
    assert right in problem


NUMBERS = {
    "targetOngoingRequests": "{}",
    "targetQueueSeconds": "{}",
    "targetKvCacheUsage": "{}",
    "targetTokensPerSecond": "{}",
    "maxNumSeqs": "{}",
    "ttftSlo": "{}",
    "itlSlo": "{}",
    "e2eSlo": "{}",
    "percentile": "{} p{}",
    "costWeight": "{}",
    "smoothingFactor": "{}",
    "lookAhead": "{}",
    "burstThreshold": "{}",
    "upscalingFactor": "{}",
    "downscalingFactor": "{}",
    "headroom": "{} {}%",
    "warmReplicas": "{} {}%",
    "maxWarmReplicas": "{} {}%",
    "upscaleDelay": "{} {}h",
    "downscaleDelay": "{}",
    "upscaleLimit": "{}/15s 4/{}s {}%/1m",
    "downscaleLimit": "{}/15s 4/{}s",
    "minReplicasSchedule": "9:00-9:30_UTC_=_{}",
    "maxNodeProvisionTime": "{}",
    "metricsInterval": "{}",
    "lookBackPeriod": "{}",
    "rules": "+{}_when_waiting_>_1 +1_when_waiting_>_{} +1_when_waiting_>_1_for_{}s +1_when_waiting_>_1_every_{}s",
}
"""Where a key has numbers: each form with `{}` for one, and `_` for a space."""

BEYOND = ("1e999", "inf", "-inf", "nan", "Infinity", "-1e-999", "9" * 400, "9" * 5000, "-" + "9" * 400, "1" + "0" * 30)


def test_every_key_that_takes_a_number_is_listed() -> None:
    words = {"rules", "utilization", "delayMode", "startingCredit", "toleranceMode", "delivery"}
    assert set(PolicySettings.keys()) - set(NUMBERS) <= words


@pytest.mark.parametrize("number", BEYOND, ids=lambda number: number[:9])
@pytest.mark.parametrize("key", NUMBERS)
def test_no_number_is_infinite_or_beyond_all_sense(key: str, number: str) -> None:
    for form in NUMBERS[key].split():
        (problem,) = problems({key: form.replace("{}", number).replace("_", " ")})
        assert problem.startswith(f"{key}: '")
        assert "right is, for instance, " in problem


@pytest.mark.parametrize("key", [*PolicySettings.keys(), "zzz", "z" * 100_000, "", "a\nb"])
def test_what_is_told_of_a_wrong_value_does_not_grow_with_it(key: str) -> None:
    text = "+1 when " + "x" * 30_000
    (problem,) = problems({key: text})
    assert len(problem) < 1200
    assert "\n" not in problem


def test_metadata_beyond_all_sense_are_refused_unread() -> None:
    assert problems({"rules": "+1 when waiting > 1;" * 10_000}) == (
        "'rules': a value of 200,000 characters is wrong; right are 32,768 at most",
    )
    assert problems({f"key{i}": "1" for i in range(1000)}) == ("1,000 keys are wrong; right are 100 at most",)


def test_of_very_many_problems_the_first_are_told() -> None:
    told = problems({f"key{i}": "1" for i in range(90)})
    assert (len(told), told[-1]) == (21, "and 70 more")
    (rules,) = problems({"rules": "; ".join(f"+1 when a{i} > 1" for i in range(500))})
    assert "'a19'" in rules
    assert "'a20'" not in rules
    assert "and 480 more" in rules


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("targetOngoingRequest", "targetOngoingRequests"),
        ("target_ongoing_requests", "targetOngoingRequests"),
        ("upscale_delay_s", "upscaleDelay"),
        ("downScaleDelay", "downscaleDelay"),
        ("minReplicaSchedule", "minReplicasSchedule"),
        ("prot", "port"),
    ],
)
def test_an_unknown_key_suggests_the_nearest_right_one(key: str, near: str) -> None:
    assert problems({key: "1"}, known=("port",)) == (f"{key}: unknown key; did you mean {near}?",)


def test_an_unknown_key_that_is_near_nothing_lists_what_is_known() -> None:
    (problem,) = problems({"zzz": "1"})
    assert problem.startswith("zzz: unknown key; known are ")
    assert "upscaleDelay" in problem


def test_keys_of_others_may_stand_beside() -> None:
    parse(PolicySettings, {"scalerAddress": "x:1", "upscaleDelay": "3s"}, known=("scalerAddress",))


def test_all_problems_are_told_at_once() -> None:
    told = problems(
        {
            "targetOngoingRequests": "many",
            "upscaleDelai": "3s",
            "headroom": "ten",
            "rules": "+1 when waiting > 5 for 1s; -1 when waiting < 1 for 1s; +2 when waiting > 9 for 5s",
            "lookBackPeriod": "1s",
        }
    )
    assert [problem.partition(":")[0] for problem in told] == [
        "targetOngoingRequests",
        "headroom",
        "upscaleDelai",
        "rules",
        "rules",
        "lookBackPeriod",
    ]


def test_a_look_back_shorter_than_two_samples_is_refused() -> None:
    (problem,) = problems({"lookBackPeriod": "2s", "metricsInterval": "1.5s"})
    assert "too short for metricsInterval 1.5s" in problem
    assert "3s or more" in problem


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid_as_it_is(name: str) -> None:
    parse(PolicySettings, with_policy({"policy": name}))


def test_without_a_policy_the_default_one_is_taken() -> None:
    assert policy_name({}) == policy_name({"policy": ""}) == DEFAULT
    assert with_policy({}) == PRESETS[DEFAULT]


def test_metadata_override_the_policy_they_name() -> None:
    values = with_policy({"policy": "ray-serve", "upscaleDelay": "9s"})
    assert values["upscaleDelay"] == "9s"
    assert values["targetOngoingRequests"] == "12"
    assert "policy" not in values


NAMED = {
    "house": {"policy": "ray-serve", "upscaleDelay": "10s", "headroom": "1"},
    "chat": {"policy": "house", "headroom": "2"},
    "bare": {"targetOngoingRequests": "4"},
    "pulse": {"policy": "pulse", "targetOngoingRequests": "7"},
    "loop": {"policy": "pool"},
    "pool": {"policy": "loop"},
}


@pytest.mark.parametrize(
    ("own", "look_back_s"),
    [
        ({}, 10.0),
        ({"metricsInterval": "5s"}, 10.0),
        ({"metricsInterval": "10s"}, 30.0),  # the preset's would hold one sample
        ({"metricsInterval": "10s", "lookBackPeriod": "40s"}, 40.0),
    ],
)
def test_a_policys_look_back_gives_way_to_the_default_where_it_is_too_short_for_the_triggers_interval(
    own: dict[str, str], look_back_s: float
) -> None:
    assert parse(PolicySettings, with_policy(own)).look_back_period_s == look_back_s


@pytest.mark.parametrize(
    ("own", "policy"),
    [
        ({"metricsInterval": "10s", "lookBackPeriod": "10s"}, {}),
        ({"policy": "chat"}, {"metricsInterval": "10s", "lookBackPeriod": "10s"}),
        ({"metricsInterval": "20s"}, {}),  # for which the default is too short as well
    ],
)
def test_a_look_back_that_somebody_wrote_too_short_is_an_error(own: dict[str, str], policy: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="lookBackPeriod"):
        parse(PolicySettings, with_policy(own, {"chat": policy}))


def test_named_policies_build_on_each_other_and_the_nearer_wins() -> None:
    values = with_policy({"policy": "chat", "headroom": "3"}, NAMED)
    assert (values["headroom"], values["upscaleDelay"], values["targetOngoingRequests"]) == ("3", "10s", "12")


def test_a_named_policy_that_builds_on_nothing_has_only_its_own_values() -> None:
    assert with_policy({"policy": "bare"}, NAMED) == {"targetOngoingRequests": "4"}


def test_a_named_policy_may_refine_the_preset_of_its_own_name() -> None:
    values = with_policy({"policy": "pulse"}, NAMED)
    assert (values["targetOngoingRequests"], values["downscaleDelay"]) == ("7", "600s")


def test_a_circle_of_policies_is_named() -> None:
    with pytest.raises(SettingsError, match="loop → pool → loop"):
        with_policy({"policy": "loop"}, NAMED)


def test_a_chain_of_policies_has_an_end() -> None:
    chain = {f"p{i}": {"policy": f"p{i + 1}"} for i in range(10_000)} | {"p10000": {"headroom": "2"}}
    with pytest.raises(SettingsError, match=r"policy: 'p0' is wrong \(more than 10 policies, each of which builds on"):
        with_policy({"policy": "p0"}, chain)
    assert with_policy({"policy": "p9991"}, chain) == {"headroom": "2"}


def test_a_policy_that_nobody_defined_names_those_that_are() -> None:
    with pytest.raises(SettingsError, match=r"policy: 'plus' is wrong \(no such policy\); known are adaptive, .*chat"):
        with_policy({"policy": "plus"}, NAMED)
    with pytest.raises(SettingsError, match=r"did you mean chat\?"):
        with_policy({"policy": "chatt"}, NAMED)
    with pytest.raises(SettingsError) as error:
        with_policy({"policy": "p" * 100_000}, {f"q{i}": {} for i in range(10_000)})
    assert len(str(error.value)) < 500
