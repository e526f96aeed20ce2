"""Somebody who looks at the page, and what they could complain about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Page, expect

from scaler.serving.host import Host
from scaler.targets import Target

PATIENCE_MS = 30_000
"""How long a test waits for what the page should show; far more than it takes."""
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Visitor:
    """One open tab on the page of a scaler."""

    page: Page
    root: str
    complaints: list[str] = field(default_factory=list)
    """Faults in scripts, breaches of the content security policy, requests that went elsewhere."""

    async def open(self, place: str = "") -> None:
        """Go to the list (no place) or to `#/NAMESPACE/NAME`."""
        await self.page.goto(self.root + place)

    async def overflows(self) -> bool:
        """Whether the page is wider than its window."""
        return bool(await self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))

    async def cells(self, row: str) -> dict[str, str]:
        """The cells of the row that is headed so, by the titles of their columns."""
        found = self.page.get_by_role("row").filter(has=self.page.get_by_role("rowheader", name=row, exact=True))
        await expect(found).to_be_visible()
        pairs = await found.evaluate("row => [...row.cells].map(cell => [cell.dataset.title, cell.textContent])")
        return dict(pairs)

    async def focused(self) -> str:
        """The text of what the keyboard is on."""
        return str(await self.page.evaluate("document.activeElement.textContent || document.activeElement.id"))

    async def tile(self, title: str) -> str:
        """The value of a tile."""
        term = self.page.locator(".facts div").filter(has=self.page.get_by_text(title, exact=True))
        return str(await term.locator(".value").text_content())

    async def story(self) -> str:
        """What is told of the decision."""
        lines: list[str] = await self.page.locator(".story span").all_text_contents()
        return "\n".join(lines)


@asynccontextmanager
async def visiting(browser: Browser, host: Host, **context: Any) -> AsyncIterator[Visitor]:
    """Open a tab; at the end there must be nothing to complain of."""
    tab = await browser.new_context(**context)
    page = await tab.new_page()
    visitor = Visitor(page, f"http://{host.http_address}/")
    page.on("pageerror", lambda error: visitor.complaints.append(f"fault: {error}"))
    page.on(
        "console",
        lambda said: visitor.complaints.append(said.text) if "Content Security Policy" in said.text else None,
    )
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(visitor.root) else visitor.complaints.append(f"asked {asked.url}"),
    )
    try:
        yield visitor
    finally:
        await tab.close()
    assert visitor.complaints == []


def place(target: Target) -> str:
    """The address of a target below the page's root."""
    return f"#/{target.namespace}/{target.name}"
