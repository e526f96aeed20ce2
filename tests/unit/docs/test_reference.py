"""The reference says what the code says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from docs.tools import reference
from scaler.targets.settings import TriggerSettings
from tests.unit.docs.pages import ROOT

FRESH = reference.pages()


@pytest.mark.parametrize("page", FRESH, ids=lambda page: page.name)
def test_a_page_is_as_it_would_be_written_now(page: Path) -> None:
    assert page.read_text("utf-8") == FRESH[page], "run python -m docs.tools.reference"


def test_every_key_of_a_trigger_has_its_row() -> None:
    page = FRESH[reference.FOLDER / "trigger.md"]
    for key, field in TriggerSettings.keys().items():
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{key}` |")]
        assert row.endswith(f"| {field.description} |")


def test_every_value_of_the_chart_has_its_row() -> None:
    page = FRESH[reference.FOLDER / "chart.md"]

    def leaves(values: Mapping[str, object], path: str = "") -> Iterator[str]:
        for key, value in values.items():
            if isinstance(value, dict) and value and f"| `{path}{key}` |" not in page:
                yield from leaves(value, f"{path}{key}.")
            else:
                yield f"{path}{key}"

    for path in leaves(yaml.safe_load((ROOT / "k8s" / "chart" / "values.yaml").read_text("utf-8"))):
        assert f"\n| `{path}` | `" in page


def test_every_option_of_serve_has_its_row() -> None:
    page = FRESH[reference.FOLDER / "serve.md"]
    for option in ("--listen", "--page-token-file", "--shadow", "--allow-endpoints", "--ray", "--log-level"):
        assert f"| `{option}" in page


def test_what_is_not_translated_stands_in_english() -> None:
    [line] = [line for line in reference.chart({"meaning": "含义"}) if "shadow" in line]
    assert line == "| `shadow` | `false` | Decide and explain, but tell KEDA the present count. |"
    assert "| value | default | 含义 |" in list(reference.chart({"meaning": "含义"}))


def test_no_translation_is_of_a_text_that_has_changed() -> None:
    class Asked(dict[str, str]):
        """English that remembers what was asked for."""

        def get(self, text: str, default: str = "") -> str:  # type: ignore[override]
            self[text] = default
            return default

    asked = Asked()
    for write in reference.WRITERS.values():
        list(write(asked))
    assert not reference.words("zh").keys() - asked.keys(), "translate these texts anew in docs/tools/reference.zh.yaml"
