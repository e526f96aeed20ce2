"""What the pages say is there: files, headings, commands, options, keys. And both languages say the same."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import typer
import yaml

from scaler.cli import COMMANDS
from scaler.cli.linting import Given, Severity, check
from scaler.policy.presets import PRESETS
from scaler.targets import parse_trigger
from scaler.targets.settings import TriggerSettings
from tests.unit.docs.pages import FENCE, ROOT, Page, commands, pages

PAGES = pages()
DOCS = ROOT / "docs"
ENGLISH_ONLY = ("docs/benchmarks", "CONTRIBUTING.md", "k8s/")
"""Tables of numbers, and what only those read who read the code."""

every_page = pytest.mark.parametrize("page", PAGES, ids=str)


def chinese(page: Page) -> Page:
    return Page(page.path.with_suffix(".zh.md"))


TRANSLATED = [page for page in PAGES if not str(page).startswith(ENGLISH_ONLY) and ".zh." not in page.path.name]
every_translated_page = pytest.mark.parametrize("page", TRANSLATED, ids=str)


@every_page
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links:
        path, _, anchor = link.partition("#")
        file = (page.path.parent / path).resolve() if path else page.path
        assert file.exists(), link
        assert not anchor or anchor in Page(file).anchors, link


@every_page
def test_commands_and_their_options_exist(page: Page) -> None:
    inline = re.findall(r"`((?:kubectl )?vllm-scaler [^`\n]+)`", FENCE.sub("", page.text))
    for script in [*page.written_in("sh"), *inline]:
        for words in commands(script):
            _check(words)


@pytest.mark.parametrize("name", ["tuning.md", "tuning.zh.md"])
def test_the_options_of_a_backtest_exist(name: str) -> None:
    told = re.findall(r"(?<=[` ])--[a-z-]+", Page(DOCS / name).text)
    assert len(told) >= 20
    assert set(told) <= _options("backtest") | _options("serve")


def _check(words: list[str]) -> None:
    match words:
        case ["vllm-scaler", "--install-completion" | "--version"]:
            pass
        case ["vllm-scaler", command, *rest] | ["kubectl", "vllm-scaler", command, *rest]:
            assert command in COMMANDS, words
            known = _options(command)
            options = [word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)]
            assert set(options) <= known, words
        case ["make", verb, *_]:
            assert re.search(rf"^{verb}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), words
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module), words
        case ["helm", "install" | "upgrade", _, chart, *rest]:
            assert (ROOT / chart).is_dir(), words
            values = [word.partition("=")[0] for before, word in pairwise(rest) if before == "--set"]
            assert set(values) <= _values(), words
        case ["kubectl", *rest]:
            files = [word for word in rest if word.startswith("k8s/")]
            assert all((ROOT / file).exists() for file in files), words
        case _:
            pass


@cache
def _options(command: str) -> set[str]:
    app = typer.Typer()
    app.command()(getattr(import_module(f"scaler.cli.{command}"), command))
    known = typer.main.get_command(app).params
    return {"--help", "-h"}.union(*(option.opts for option in known), *(option.secondary_opts for option in known))


@cache
def _values() -> set[str]:
    def paths(values: object, path: str) -> set[str]:
        if not isinstance(values, dict):
            return {path}
        return {path}.union(*(paths(value, f"{path}.{key}".lstrip(".")) for key, value in values.items()))

    return paths(yaml.safe_load((ROOT / "k8s" / "chart" / "values.yaml").read_text("utf-8")), "")


@every_page
def test_manifests_and_metadata_would_be_accepted(page: Page) -> None:
    for text in page.written_in("yaml"):
        for document in yaml.safe_load_all(text):
            assert isinstance(document, dict | list), text
            if isinstance(document, dict):
                _accepted(document)
        report = check([(str(page), text.encode())], Given())
        assert not [finding for finding in report.findings if finding.severity is Severity.ERROR], text


def _accepted(document: Mapping[str, object]) -> None:
    """Parse what is a trigger's metadata, a piece of them, or policies of the operator's."""
    policies = document.get("policies")
    if isinstance(policies, dict):
        for name in policies:
            parse_trigger({"policy": name}, policies)
    metadata = document.get("metadata")
    for values in (metadata, document):
        if isinstance(values, dict) and values.keys() <= {*TriggerSettings.keys(), "policy", "scalerAddress"}:
            parse_trigger(values, dict.fromkeys(("chat",), PRESETS["adaptive"]))


def test_nothing_but_known_languages_is_fenced() -> None:
    fenced = {block.language for page in PAGES for block in page.blocks}
    assert fenced <= {"sh", "yaml", "text", "json", ""}


@every_translated_page
def test_both_languages_have_the_same_shape(page: Page) -> None:
    other = chinese(page)
    assert other.path.exists(), f"{other} is missing"
    assert [level for level, _ in page.headings] == [level for level, _ in other.headings]
    assert page.text.count("\n|") == other.text.count("\n|"), "rows of tables"
    assert [_uncommented(block.text) for block in page.blocks] == [_uncommented(block.text) for block in other.blocks]


def _uncommented(text: str) -> str:
    """A block without the comments in it, which are translated."""
    return re.sub(r"\s*(?<!\S)# .*", "", text)


@every_translated_page
def test_links_stay_in_their_language(page: Page) -> None:
    for link in chinese(page).links:
        file = (page.path.parent / link.partition("#")[0]).resolve()
        assert Page(file) == page or Page(file) not in TRANSLATED, f"{link}: there is a Chinese page"


@pytest.mark.parametrize("picture", sorted((DOCS / "pictures").glob("*.zh.svg")), ids=lambda path: path.name)
def test_a_picture_differs_from_its_translation_only_in_words(picture: Path) -> None:
    def drawn(path: Path) -> str:
        return re.sub(r">[^<>]*</t", "></t", path.read_text("utf-8"))

    assert drawn(picture) == drawn(picture.with_name(picture.name.replace(".zh.", ".")))


def test_every_right_that_the_chart_asks_for_is_told() -> None:
    templates = (ROOT / "k8s" / "chart" / "templates").glob("*")
    asked = {
        resource
        for template in templates
        for line in re.findall(r"^ *resources: \[([^{\]]+)\]", template.read_text("utf-8"), re.MULTILINE)
        for resource in re.split(r",\s*", line)
    }
    assert {"scaledobjects", "pods", "leases", "deployments/scale"} <= asked
    told = (DOCS / "security.md").read_text("utf-8").lower().replace(" ", "")
    assert not {resource for resource in asked if resource.partition("/")[0].removesuffix("s") not in told}
