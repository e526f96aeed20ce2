"""Pods that answer from memory, so cheaply that what is measured is the side that asks."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import cast

import uvloop

from benchmarks._processes import beside

Address = tuple[str, int]

_NAME = re.compile(rb"[?&]name%5B%5D=([^& ]+)")
_FULL = b"/metrics"


@dataclass(frozen=True)
class Pages:
    """What a pod's page says, second by second, again and again."""

    pages: Sequence[bytes]
    filters: bool
    """Whether the pod answers `/metrics/?name[]=…` with the named series alone, as vLLM does."""
    _answers: dict[tuple[int, bytes], bytes] = field(default_factory=dict)

    def answer(self, second: int, target: bytes) -> bytes:
        """The whole HTTP answer to a question for `target`."""
        key = (second % len(self.pages), target)
        if key not in self._answers:
            self._answers[key] = self._make(self.pages[key[0]], target)
        return self._answers[key]

    def _make(self, page: bytes, target: bytes) -> bytes:
        if target == _FULL:
            return _answer(b"200 OK", page)
        return _answer(b"200 OK", _only(page, target)) if self.filters else _answer(b"404 Not Found", b"")


class _Pod(asyncio.Protocol):
    def __init__(self, pages: Pages, ahead_s: int) -> None:
        self._pages = pages
        self._ahead_s = ahead_s
        self._write: Callable[[bytes], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast(asyncio.Transport, transport).write

    def data_received(self, data: bytes) -> None:
        target = data[4 : data.index(b" HTTP/1.1\r\n")]
        self._write(self._pages.answer(int(time.monotonic()) + self._ahead_s, target))


def _answer(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def _only(page: bytes, target: bytes) -> bytes:
    """The lines of the samples that the question names."""
    names = {name.replace(b"%3A", b":") for name in _NAME.findall(target)}
    return b"".join(line for line in page.splitlines(keepends=True) if re.split(rb"[{ ]", line, maxsplit=1)[0] in names)


@contextmanager
def serving(pages: Pages, addresses: Sequence[Address]) -> Iterator[tuple[list[int], int]]:
    """Pods at these addresses, in a process of their own: their ports (0 takes a free one) and its process id.

    No two pods are at the same place of the pages.
    """
    with beside(_serve, pages, addresses) as served:
        yield served


def _serve(pages: Pages, addresses: Sequence[Address], connection: Connection) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(partial(_Pod, pages, i), host, port) for i, (host, port) in enumerate(addresses)
        ]
        connection.send([server.sockets[0].getsockname()[1] for server in servers])
        await asyncio.to_thread(connection.recv)

    uvloop.run(serve())
