"""The operator's file of policies: read as a trigger's metadata would be, and checked as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaler.cli import policies
from scaler.targets import SettingsError

BOMB = "p0: &p0 [ha]\n" + "".join(f"p{i}: &p{i} [{', '.join([f'*p{i - 1}'] * 9)}]\n" for i in range(1, 30))
"""A few lines that aliases make to 9²⁹ elements."""


def written(folder: Path, text: str) -> Path:
    file = folder / "policies.yaml"
    file.write_text(text)
    return file


def test_values_are_read_as_the_text_that_metadata_are(tmp_path: Path) -> None:
    file = written(tmp_path, "chat:\n  policy: ray-serve\n  headroom: 10%\n  startingCredit: false\n  maxNumSeqs: 64\n")
    assert policies.load(file) == {
        "chat": {"policy": "ray-serve", "headroom": "10%", "startingCredit": "false", "maxNumSeqs": "64"}
    }


@pytest.mark.parametrize("value", ["010", "off", "1_0", "0x10", "2026-12-24", "1e1", "10:30", "no", "yes"])
def test_nothing_is_made_of_a_value_before_it_is_read(tmp_path: Path, value: str) -> None:
    for text in (value, f"'{value}'"):
        with pytest.raises(SettingsError, match=f"toleranceMode: '{value}' is wrong"):
            policies.load(written(tmp_path, f"chat:\n  toleranceMode: {text}\n"))


def test_policies_may_share_values_by_yamls_merge(tmp_path: Path) -> None:
    file = written(tmp_path, "base: &base\n  headroom: 2\nchat:\n  <<: *base\n  upscaleDelay: 5s\n")
    assert policies.load(file)["chat"] == {"headroom": "2", "upscaleDelay": "5s"}


def test_a_long_chain_of_policies_is_refused_at_the_price_of_its_length(tmp_path: Path) -> None:
    chain = "".join(f"p{i}: {{policy: p{i + 1}}}\n" for i in range(2000)) + "p2000: {headroom: 2}\n"
    with pytest.raises(SettingsError) as error:
        policies.load(written(tmp_path, chain))
    assert "p0: policy: 'p0' is wrong (more than 10 policies" in error.value.problems[0]
    assert error.value.problems[-1] == "and 1971 more"


def test_an_endless_file_is_not_taken() -> None:
    with pytest.raises(SettingsError, match="/dev/zero: more than 64 MB"):
        policies.load(Path("/dev/zero"))


def test_a_policy_may_build_on_another_of_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "base:\n  headroom: 2\nchat:\n  policy: base\n  upscaleDelay: 5s\n")
    assert set(policies.load(file)) == {"base", "chat"}


def test_an_empty_file_has_no_policies(tmp_path: Path) -> None:
    assert policies.load(written(tmp_path, "# nothing yet\n")) == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- chat", "a mapping of policy names is expected, found a list"),
        ("fast", "a mapping of policy names is expected, found 'fast'"),
        ("chat: [", "no YAML"),
        ("chat: fast", "chat: a mapping of keys to values is expected, found 'fast'"),
        ("chat:\n  rules: [a]", "chat: rules: text or a number is expected, found a list"),
        ("chat:\n  rules:", "chat: rules: text or a number is expected, found nothing"),
        ("chat: 2026-99-99", "a mapping of keys to values is expected, found '2026-99-99'"),
        ("chat:\n  headroom: !!int 2", "chat: headroom: text or a number is expected, found 2"),
        (
            "chat:\n  headroom: 2\n\n  headroom: 3",
            "policies.yaml, line 4: headroom stands there twice, first in line 2",
        ),
        ("chat: {}\nchat: {headroom: 3}", "policies.yaml, line 2: chat stands there twice, first in line 1"),
        ("chat:\n  lookAhead: 10:30", "chat: lookAhead: '10:30' is wrong (not a duration)"),
        ("a: \x07", "line 1: no YAML"),
        ("a: 1\nb: [", "line 2: no YAML"),
        ("[" * 100_000, "no YAML"),
        ("chat: &chat\n  rules: *chat", "chat: rules: text or a number is expected, found a mapping"),
        (BOMB, "p0: a mapping of keys to values is expected, found a list"),
        ("chat:\n  upscaleDelays: 3s", "did you mean upscaleDelay?"),
        ("chat:\n  policy: chatty", "no such policy"),
    ],
)
def test_what_is_wrong_is_named_with_the_file_and_the_policy(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as error:
        policies.load(written(tmp_path, text))
    assert told in str(error.value)
    assert "policies.yaml" in str(error.value)


def test_every_problem_of_the_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        policies.load(written(tmp_path, "one:\n  upscaleDelay: soon\ntwo:\n  headroom: lots\nthree: 3\n"))
    assert len(error.value.problems) == 3
