"""GPU use from DCGM exporters over real HTTP: asked for in passing, read in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from scaler.sources.gpu import GpuUtilization
from tests.fleet.web import PodServer, until

PAGE = """\
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",container="vllm",namespace="prod",pod="chat-0"} 80
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",container="vllm",namespace="prod",pod="chat-1"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-c",container="",namespace="",pod=""} 0
"""


class Clock:
    """Stands still until it is told to go on."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Exporter:
    """An exporter's page whose use of chat-0 can be set, and whoever reads it."""

    def __init__(self) -> None:
        self.percent = 80
        self.broken = False
        self.clock = Clock()
        self.server = PodServer(self._answer)
        self.gpu: GpuUtilization

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500) if self.broken else web.Response(text=PAGE.replace("80", str(self.percent)))

    def use(self, pod: str = "chat-0", namespace: str = "prod") -> float | None:
        return self.gpu.utilization(namespace, pod, "127.0.0.1")

    async def read(self) -> None:
        """Ask, and wait until the page that this brings about was read."""
        before = len(self.server.asked)
        self.use()

        async def was_read() -> bool:
            return len(self.server.asked) > before and not self.gpu.reading

        await until(was_read)


@pytest.fixture
async def exporter() -> AsyncIterator[Exporter]:
    world = Exporter()
    async with world.server as server:
        world.gpu = GpuUtilization(f"http://{{host_ip}}:{server.port}/metrics", clock=world.clock)
        yield world
        await world.gpu.close()


async def test_the_first_answer_is_unknown_and_the_page_is_read_meanwhile(exporter: Exporter) -> None:
    assert exporter.use() is None

    await exporter.read()

    assert exporter.use("chat-0") == pytest.approx(0.8)
    assert exporter.use("chat-1") == 0.0


async def test_a_pod_that_is_not_on_the_page_is_not_idle(exporter: Exporter) -> None:
    await exporter.read()

    assert exporter.use("chat-7") is None
    assert exporter.use("chat-0", namespace="lab") is None


async def test_a_page_is_read_at_most_every_ten_seconds(exporter: Exporter) -> None:
    await exporter.read()
    exporter.percent = 30
    exporter.clock.now += 9.0
    assert [exporter.use() for _ in range(100)] == [pytest.approx(0.8)] * 100
    assert len(exporter.server.asked) == 1
    exporter.clock.now += 1.0

    await exporter.read()

    assert exporter.use() == pytest.approx(0.3)


async def test_what_was_read_a_minute_ago_is_unknown(exporter: Exporter) -> None:
    await exporter.read()
    exporter.broken = True
    exporter.clock.now += 60.0
    await exporter.read()
    assert exporter.use() == pytest.approx(0.8)
    exporter.clock.now += 0.1

    assert exporter.use() is None


async def test_one_address_for_all_nodes_is_read_once(exporter: Exporter) -> None:
    gpu = GpuUtilization(f"http://localhost:{exporter.server.port}/metrics", clock=exporter.clock)
    for host_ip in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
        assert gpu.utilization("prod", "chat-0", host_ip) is None

    async def was_read() -> bool:
        return gpu.utilization("prod", "chat-0", "192.0.2.9") is not None

    await until(was_read)
    assert len(exporter.server.asked) == 1
    await gpu.close()


@pytest.mark.parametrize("url", ["", "dcgm:9400", "ftp://{host_ip}/metrics", "http://{node}:9400/metrics", "http://"])
async def test_an_address_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"an address like http://.host_ip.:9400/metrics is expected"):
        GpuUtilization(url)
