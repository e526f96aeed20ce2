"""Take the pictures of docs/page: `python -m tests.browser.pictures`. Needs Chromium and three quiet minutes."""

from __future__ import annotations

import asyncio
import base64
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from playwright.async_api import Page, expect

from scaler.cluster.model import ScaledObject, Trigger, Workload
from scaler.exposition.sample import Sample
from scaler.serving.host import Host, Ports
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from scaler.targets import Targets, World
from tests.browser.chromium import chromium
from tests.protocol.world import LOOPBACK, Fleet

FOLDER = Path(__file__).parents[2] / "docs" / "page"
WIDTH, PHONE = 1280, {"width": 390, "height": 844}

TOWN: Mapping[str, tuple[Fleet, Mapping[str, str]]] = {
    "chat/llama-70b": (Fleet(ready=6, running=88, maximum=24), {"policy": "adaptive"}),
    "chat/llama-8b": (Fleet(ready=3, running=20, maximum=12), {"targetOngoingRequests": "12"}),
    "chat/mistral-24b": (Fleet(ready=2, running=9, maximum=8), {"policy": "ray-serve"}),
    "code/qwen-coder-32b": (Fleet(ready=4, running=40, maximum=16), {"targetOngoingRequests": "10"}),
    "code/starcoder": (Fleet(ready=1, maximum=4), {"policy": "queue-rules"}),
    "rag/bge-reranker": (Fleet(ready=2, running=6, maximum=6), {"policy": "dual-threshold"}),
    "rag/gemma-27b": (Fleet(ready=3, maximum=8), {"targetOngoingRequests": "16"}),
    "vision/qwen-vl": (Fleet(missing="vision/qwen-vl: its Deployment does not exist"), {}),
    "vision/pixtral": (Fleet(), {"upscaleDelay": "soon"}),
}
"""Namespace and name → the pods, and what the trigger says."""


class Town:
    """All of these fleets, as one cluster."""

    def __init__(self) -> None:
        self.fleets = {place.partition("/")[2]: fleet for place, (fleet, _) in TOWN.items()}

    def workload(self, namespace: str, name: str) -> Workload:
        return self.fleets[name].workload(namespace, name)

    async def sample(
        self, endpoints: Sequence[Endpoint], options: ReadOptions, deadline_s: float
    ) -> Mapping[str, Sample | Unknown]:
        fleet = self.fleets[endpoints[0].pod.rpartition("-")[0]]
        return await fleet.sample(endpoints, options, deadline_s)

    async def close(self) -> None:
        """Nothing is held."""


async def list_of(page: Page) -> None:
    """A town in which one model grows, one cannot be read, one is missing and one is told wrongly."""
    town = Town()
    targets = Targets(World(town, town))
    async with Host(targets, Ports(LOOPBACK, LOOPBACK)) as host:
        targets.show([_scaled_object(place, metadata) for place, (_, metadata) in TOWN.items()])
        await host.lead()
        await page.goto(f"http://{host.http_address}/")
        await expect(page.get_by_role("row")).to_have_count(len(TOWN) + 1)
        await asyncio.sleep(4)
        town.fleets["llama-8b"].waiting = 31
        town.fleets["qwen-coder-32b"].waiting, town.fleets["qwen-coder-32b"].starting = 24, 2
        town.fleets["gemma-27b"].silent = True
        await expect(page.get_by_role("cell", name="3 of the ready pods cannot be read")).to_be_visible()
        await asyncio.sleep(8)
        await _take(page, "list", height=380)


async def target_of(page: Page) -> None:
    """The demo, when the wave has come and the start-up times have been seen."""
    code = "from scaler.cli import main; main()"
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, "demo", "--headless", "--for", "15m", "--speed", "5"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert demo.stdout is not None
        address = re.search(r"http://\S+", (await demo.stdout.readline()).decode())
        assert address is not None
        await page.goto(f"{address[0]}#/demo/llama")
        await asyncio.sleep(136)
        await _take(page, "target", height=1050)
    finally:
        demo.kill()
        await demo.wait()


async def _take(page: Page, what: str, height: int) -> None:
    """Take three pictures: light, dark and on a phone."""
    devtools = await page.context.new_cdp_session(page)
    for scheme in ("light", "dark", "narrow"):
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        await page.set_viewport_size(PHONE if scheme == "narrow" else {"width": WIDTH, "height": height})
        await asyncio.sleep(2)
        picture = await devtools.send("Page.captureScreenshot", {"format": "webp", "quality": 70})
        (FOLDER / f"{what}-{scheme}.webp").write_bytes(base64.b64decode(picture["data"]))


def _scaled_object(place: str, metadata: Mapping[str, str]) -> ScaledObject:
    namespace, _, name = place.partition("/")
    triggers = (Trigger(0, "external", metadata),)
    return ScaledObject(namespace, name, place, 1, "apps/v1", "Deployment", name, 1, 20, 300.0, 30.0, False, triggers)


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with chromium() as browser:
        page = await browser.new_page()
        await list_of(page)
        await target_of(page)


if __name__ == "__main__":
    asyncio.run(main())
