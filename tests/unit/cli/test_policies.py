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
        ("chat: 2026-99-99", "no YAML"),
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
