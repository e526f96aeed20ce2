"""A real Chromium, as Debian packages it, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
"""For root in a container, which has neither user namespaces nor a large /dev/shm."""


def missing() -> str | None:
    """Why no browser can be had here, None where it can."""
    if shutil.which("chromium") is None:
        return "the live page is tested in Chromium: apt-get install --no-install-recommends chromium"
    return None


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser of its own, without a window."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
        try:
            yield browser
        finally:
            await browser.close()
