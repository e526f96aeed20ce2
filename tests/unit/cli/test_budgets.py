"""The operator's file of budgets, checked as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaler.cli import budgets
from scaler.targets import Budget, SettingsError

GOOD = """
pool-a:
  gpus: 16
  priorities: {"batch/*": -1, "chat/*": 5, chat/llama: 10, "chat/ll*": 7}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "budgets.yaml"
    file.write_text(text)
    return file


def test_the_longest_pattern_that_fits_counts_in_whatever_order_they_stand(tmp_path: Path) -> None:
    (found,) = budgets.load(written(tmp_path, GOOD))
    assert found == Budget("pool-a", 16, {"batch/*": -1, "chat/*": 5, "chat/llama": 10, "chat/ll*": 7})
    of = {("chat", "llama"): 10, ("chat", "qwen"): 5, ("chat", "llm"): 7, ("batch", "x"): -1}
    assert {key: found.priority(*key) for key in of} == of
    assert found.priority("code", "llama") is None


def test_an_empty_file_has_no_budgets(tmp_path: Path) -> None:
    assert budgets.load(written(tmp_path, "# none yet\n")) == ()


WRONG = {
    "- pool": "a mapping of budget names is expected, found a list",
    "pool: 16": "pool: a mapping with gpus and priorities is expected, found '16'",
    "pool: {gpus: many, priorities: {chat/*: 1}}": "pool: gpus: 'many' is wrong",
    "pool: {gpus: -1, priorities: {chat/*: 1}}": "pool: gpus: '-1' is wrong",
    "pool: {gpus: 1e9, priorities: {chat/*: 1}}": "pool: gpus: '1e9' is wrong",
    "pool: {priorities: {chat/*: 1}}": "pool: gpus: ",
    "pool: {gpus: 1}": "pool: priorities: ",
    "pool: {gpus: 1, priorities: {}}": "pool: priorities: an empty mapping is wrong (no targets)",
    "pool: {gpus: 1, priorities: [chat/*]}": "pool: priorities: a list is wrong (no targets)",
    "pool: {gpus: 1, priorities: {chat: 1}}": "pool: priorities: 'chat' is wrong (no NAMESPACE/NAME)",
    "pool: {gpus: 1, priorities: {chat/: 1}}": "pool: priorities: 'chat/' is wrong (no NAMESPACE/NAME)",
    "pool: {gpus: 1, priorities: {/llama: 1}}": "pool: priorities: '/llama' is wrong (no NAMESPACE/NAME)",
    "'': {gpus: 1, priorities: {chat/*: 1}}": "'' is no name of a budget; right is, for instance, 'pool-a'",
    '"a\\nb": {gpus: 1, priorities: {chat/*: 1}}': "is no name of a budget",
    "pool: {gpus: 1, priorities: {chat/*: high}}": "pool: priorities: chat/*: 'high' is wrong (no whole number)",
    "pool: {gpus: 1, priorities: {chat/*: 1}, cpus: 2}": "pool: cpus: unknown key; known are gpus and priorities",
    "pool: {gpus: 1, gpus: 2, priorities: {chat/*: 1}}": "line 1: gpus stands there twice",
    "pool: {": "no YAML",
}


@pytest.mark.parametrize(("text", "told"), WRONG.items())
def test_what_is_wrong_is_named_with_the_file(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as error:
        budgets.load(written(tmp_path, text))
    assert told in str(error.value)
    assert "budgets.yaml" in str(error.value)
