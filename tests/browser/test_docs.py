"""The documentation, opened from a folder as a reader without a network would: search, languages, a phone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Page, expect
from playwright.async_api import TimeoutError as NothingYet

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = (sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder))
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    return folder


@pytest.fixture
async def page(browser: Browser, site: Path) -> Page:
    """The first page, in a browser that can reach nothing."""
    page = await browser.new_page()
    await page.context.set_offline(True)
    await page.goto((site / "index.html").as_uri())
    return page


async def search(page: Page, words: str) -> None:
    """Type until something is found: what is typed before the page's script listens is not heard."""
    box, found = page.locator("input.md-search__input"), page.locator(".md-search-result__link").first
    for _ in range(10):
        await box.fill("")
        await box.press_sequentially(words)
        try:
            await found.wait_for(state="attached", timeout=6_000)
        except NothingYet:
            continue
        return


async def test_it_reads_and_is_searched_without_a_network(page: Page) -> None:
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url) if request.url[:4] == "http" else None)
    await page.get_by_role("link", name="Concepts").first.click()
    await expect(page.get_by_role("heading", name="Arriving exactly")).to_be_visible()
    await search(page, "swallows")
    await expect(page.locator(".md-search-result")).to_contain_text("Arriving exactly")
    assert not elsewhere


async def test_the_other_language_has_the_same_page_and_its_own_search(page: Page) -> None:
    await page.get_by_role("link", name="Troubleshooting").first.click()
    await page.locator(".md-select").hover()
    await page.get_by_role("link", name="中文").click()
    await expect(page.get_by_role("heading", name="故障排查")).to_be_visible()
    await search(page, "死区")
    await expect(page.locator(".md-search-result__link").first).to_contain_text("死区")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_phone_scrolls_tables_and_not_the_page(
    page: Page, site: Path, scheme: Literal["light", "dark"]
) -> None:
    await page.emulate_media(color_scheme=scheme)
    await page.set_viewport_size({"width": 390, "height": 844})
    for name in ("tutorial", "troubleshooting", "reference/trigger", "zh/comparison"):
        await page.goto((site / f"{name}.html").as_uri())
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390, name
    background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, background.removeprefix("rgb(").removesuffix(")").split(",")))
    assert (brightness < 384) == (scheme == "dark")
