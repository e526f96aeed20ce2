"""The site builds without a warning, in both languages, and takes nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.tools.hooks import on_page_markdown
from tests.unit.docs.pages import ROOT

LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)|<link\b[^>]*\bhref=[\"']?([^\"'\s>]+)"
)
"""What a browser fetches for a page by itself."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder))
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert build.returncode == 0, build.stdout + build.stderr
    return folder


def test_every_page_is_there_in_both_languages(site: Path) -> None:
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"}
    english = {page for page in pages if not page.startswith("zh/")}
    assert {"index.html", "tutorial.html", "reference/trigger.html", "benchmarks.html"} <= english
    assert {f"zh/{page}" for page in english} == pages - english


def test_every_page_is_in_the_navigation_once(site: Path) -> None:
    entries = re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert len(entries) == len(set(entries))
    index = (site / "index.html").read_text("utf-8")
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    listed = set(re.findall(r'<a href="([^"#]+)" class="md-nav__link', index)) | {"index.html"}
    assert {page for page in pages if not page.startswith(("zh/", "benchmarks/", "404"))} <= listed


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in set(site.rglob("*.html")) - {site / "404.html"}:
        text = re.sub(r"<link rel=.?(?:canonical|alternate|next|prev)[^>]*>", "", page.read_text("utf-8"))
        for found in LOADED.finditer(text):
            place = found[1] or found[2]
            assert not re.match(r"(\w+:)?//", place), f"{page.name}: {place}"
            assert (page.parent / place).exists(), f"{page.name}: {place}"
    for sheet in (*site.rglob("*.css"), *(site / "pictures").glob("*.svg")):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", sheet.read_text("utf-8")), sheet


def test_its_own_tools_are_no_part_of_it(site: Path) -> None:
    assert not (site / "tools").exists()


class _Page:
    class file:  # noqa: N801 - as mkdocs has it
        src_uri = "reference/trigger.md"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("[steps](../../scaler/policy/steps/ahead.py) decide", "steps decide"),
        ("[`steps.py`](../../scaler/steps.py#L3)", "`steps.py`"),
        ("[pages by trace](../benchmarks/)", "pages by trace"),
        ("[presets](../presets.md)", "[presets](../presets.md)"),
        ("[here](#there)", "[here](#there)"),
        ("[KEDA](https://keda.sh)", "[KEDA](https://keda.sh)"),
        ("![picture](../pictures/loop.svg)", "![picture](../pictures/loop.svg)"),
    ],
)
def test_links_that_leave_the_site_become_text(written: str, kept: str) -> None:
    assert on_page_markdown(written, _Page) == kept
