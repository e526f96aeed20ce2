"""How busy a pod's GPUs are, from the pages of DCGM exporters: one per node, or one address for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog
from yarl import URL

from scaler.exposition import read_gpu_utilization
from scaler.exposition.sample import PageError
from scaler.quoting import quoted
from scaler.sources.access import Access
from scaler.sources.fetching import Fetcher, FetchError

INTERVAL_S = 10.0
"""An exporter renews its values every 30 s by default: asking more often only costs."""
MAX_AGE_S = 60.0
TIMEOUT_S = 5.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Page:
    use: Mapping[tuple[str, str], float] = field(default_factory=dict)
    read_at: float = float("-inf")
    asked_at: float = float("-inf")
    trouble: str = ""
    """Why the last reading failed, empty when it did not: named in the log once."""
    reading: asyncio.Task[None] | None = None


class GpuUtilization:
    """Answers from memory, and reads pages in the background only while somebody asks for their pods."""

    def __init__(self, url: str, access: Access | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the pages' address, where `{host_ip}` stands for the IP of the pod's node.

        Must be called with a running event loop. Raises ValueError when `url` is not an http or https address.
        """
        address = URL(url.replace("{host_ip}", "192.0.2.1"))
        if address.scheme not in ("http", "https") or not address.host or set(address.human_repr()) & set("{}"):
            raise ValueError(f"{quoted(url)}: an address like http://{{host_ip}}:9400/metrics is expected")
        self._url = url
        self._clock = clock
        self._fetcher = Fetcher(access or Access())
        self._pages: dict[str, _Page] = {}

    def utilization(self, namespace: str, pod: str, host_ip: str) -> float | None:
        """Return the mean use of the pod's GPUs, 0 to 1; None when no page of the last minute names it."""
        now = self._clock()
        host = f"[{host_ip}]" if ":" in host_ip else host_ip
        url = self._url.replace("{host_ip}", host)
        page = self._pages.get(url)
        if page is None:
            self._forget_old_pages(now)
            page = self._pages[url] = _Page()
        if page.reading is None and now - page.asked_at >= INTERVAL_S:
            page.asked_at = now
            page.reading = asyncio.create_task(self._read(url, page))
        return page.use.get((namespace, pod)) if now - page.read_at <= MAX_AGE_S else None

    @property
    def reading(self) -> bool:
        """Whether a page is being read now."""
        return any(page.reading is not None for page in self._pages.values())

    async def close(self) -> None:
        """End what is being read and close all connections."""
        tasks = [page.reading for page in self._pages.values() if page.reading is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fetcher.close()

    async def _read(self, url: str, page: _Page) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                page.use = await self._fetcher.read(URL(url), read_gpu_utilization)
            page.read_at, trouble = self._clock(), ""
        except TimeoutError:
            trouble = f"timed out after {TIMEOUT_S:g} s"
        except (FetchError, PageError) as error:
            trouble = str(error)
        finally:
            page.reading = None
        if trouble and trouble != page.trouble:
            log.warning("GPU use cannot be read", url=url, reason=trouble)
        page.trouble = trouble

    def _forget_old_pages(self, now: float) -> None:
        for url in [url for url, page in self._pages.items() if now - page.asked_at > MAX_AGE_S]:
            del self._pages[url]
