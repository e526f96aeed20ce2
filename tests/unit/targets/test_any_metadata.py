"""Whatever metadata say: settings, or one error that names what is wrong, and never another end."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from scaler.policy import SettingsError
from scaler.policy.parsing import Amount
from scaler.targets import TriggerSettings, parse_trigger

KEYS = ["policy", "scalerAddress", *TriggerSettings.keys()]
NUMBERS = [
    "0",
    "-0",
    "1",
    "0.5",
    "-3",
    "10%",
    "1e999",
    "inf",
    "nan",
    "9" * 400,
    "9" * 5000,
    "1/0s",
    "4/15s",
    "3s",
    "1_0",
    "٣",
]
PIECES = [
    *NUMBERS,
    *("+1", "-2", "+1..3", "when", "waiting", "ttft_p95", ">", "<=", "and", "or", "for", "every", ";", "5m"),
    *("Mon-Fri", "2026-02-30", "08:00-24:00", "24:00-25:61", "UTC", "Europe/Berlin", "../../etc/passwd", "=", "64"),
    *("auto", "true", "exact", "adaptive", "chat", "loop", "127.0.0.1:8000", "[::1]:1", ",", "/metrics", "\n", "\x00"),
]
values = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join),
    st.floats().map(str),
    st.integers().map(str),
    st.sampled_from(["x" * 100_000, "+1 when waiting > 1;" * 1000, "", " "]),
)
keys = st.one_of(
    st.sampled_from(KEYS),
    st.sampled_from(KEYS).map(lambda key: f"{key}FromEnv"),
    st.text(max_size=20),
    st.just("k" * 10_000),
)
metadata = st.dictionaries(keys, values, max_size=8)
named = st.dictionaries(st.sampled_from(["chat", "loop", "pulse", "adaptive"]), metadata, max_size=3)


def outcome(values: dict[str, str], policies: dict[str, dict[str, str]]) -> TriggerSettings | SettingsError:
    try:
        return parse_trigger(values, policies)
    except SettingsError as error:
        return error


@given(metadata, named)
def test_any_metadata_are_settings_or_one_error_in_few_words(
    values: dict[str, str], policies: dict[str, dict[str, str]]
) -> None:
    found = outcome(values, policies)
    if isinstance(found, SettingsError):
        assert found.problems
        assert all("\n" not in problem for problem in found.problems)
        assert len(str(found)) < 25_000
    else:
        for value in found.model_dump().values():
            number = value.value if isinstance(value, Amount) else value
            assert not isinstance(number, float) or (math.isfinite(number) and number >= 0)


@given(st.sampled_from(sorted(TriggerSettings.keys())), values)
def test_one_wrong_value_is_named_with_its_key(key: str, value: str) -> None:
    found = outcome({"targetOngoingRequests": "5", key: value}, {})
    if isinstance(found, SettingsError):
        assert all(key in problem for problem in found.problems), found.problems
