"""One GET of one page: bounded in size, no redirects, no cookies, and a plain reason when it fails."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import aiohttp
from aiohttp import hdrs
from yarl import URL

from scaler.quoting import LONGEST, one_line
from scaler.sources.access import Access, authorization, tls_context
from scaler.sources.turns import Turns

T = TypeVar("T")

MIB = 2**20
MAX_PAGE_BYTES = 32 * MIB
"""Pages of 22 MB are seen in the field, where labels list many adapters."""
MAX_TOTAL_BYTES = 256 * MIB
"""The most that all pages on their way may hold together."""
BIG_PAGE_BYTES = MIB
"""Reading a page of this size takes milliseconds: it is done in a thread, so that RPCs are answered meanwhile."""


class FetchError(Exception):
    """The page could not be had: the message is one line for people."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        """The HTTP status of an answer other than 200."""


class Fetcher:
    """Asks for pages over one shared pool of connections, which stay open between questions.

    It sets no deadline: whoever waits decides how long. Cancelling a question closes its connection.
    """

    def __init__(
        self,
        access: Access,
        turns: Turns | None = None,
        *,
        max_page_bytes: int = MAX_PAGE_BYTES,
        max_total_bytes: int = MAX_TOTAL_BYTES,
    ) -> None:
        """Must be called with a running event loop."""
        self._access = access
        self._authorization = authorization(access)
        self._tls = tls_context(access)
        self._max_page_bytes = max_page_bytes
        self._bytes_left = max_total_bytes
        self._turns = turns or Turns()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, happy_eyeballs_delay=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            headers={
                # An OpenMetrics answer would rename the series; a compressed one costs the engine's CPU.
                hdrs.ACCEPT: "text/plain; version=0.0.4",
                hdrs.ACCEPT_ENCODING: "identity",
                hdrs.USER_AGENT: "vllm-scaler",
            },
            auto_decompress=False,
            read_bufsize=MIB,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def read(self, url: URL, parse: Callable[[bytes], T]) -> T:
        """Return what `parse` makes of the page at `url`. Raises FetchError, and whatever `parse` raises."""
        try:
            async with self._session.get(url, allow_redirects=False, **self._credentials(url)) as answer:
                if answer.status != 200:
                    raise FetchError(await _refusal(answer), answer.status)
                if (encoding := answer.headers.get(hdrs.CONTENT_ENCODING, "identity")) != "identity":
                    raise FetchError(f"answered in {one_line(encoding)}, although plain text was asked for")
                return await self._parsed(answer.content, parse)
        except aiohttp.ClientError as error:
            raise FetchError(_reason(error)) from error

    def _credentials(self, url: URL) -> dict[str, Any]:
        options: dict[str, Any] = {}
        try:
            if url.scheme == "https":
                options["ssl"] = self._tls.get()
                options["server_hostname"] = self._access.server_name
            if (secret := self._authorization.get()) is not None:
                options["headers"] = {hdrs.AUTHORIZATION: secret}
        except OSError as error:
            raise FetchError(f"the scaler's own TLS or secret file cannot be used: {error}") from error
        return options

    async def _parsed(self, body: aiohttp.StreamReader, parse: Callable[[bytes], T]) -> T:
        parts: list[bytes] = []
        held = 0
        try:
            while part := await body.readany():
                held += len(part)
                self._bytes_left -= len(part)
                if held > self._max_page_bytes:
                    raise FetchError(f"the page is larger than {self._max_page_bytes / MIB:g} MiB")
                if self._bytes_left < 0:
                    raise FetchError("too many large pages at once: no memory left for this one")
                parts.append(part)
            page = b"".join(parts)
            parts.clear()
            if len(page) > BIG_PAGE_BYTES:
                return await asyncio.to_thread(parse, page)
            await self._turns.end()
            return parse(page)
        finally:
            self._bytes_left += held


async def _refusal(answer: aiohttp.ClientResponse) -> str:
    """Return the reason for an answer other than 200, in one line."""
    if answer.status in range(300, 400):
        place = one_line(answer.headers.get(hdrs.LOCATION, "nowhere"))
        return f"HTTP {answer.status} to {place}: redirects are not followed"
    body = (await answer.content.read(4 * LONGEST)).decode("utf-8", "replace")
    return f"HTTP {answer.status}: {one_line(body or answer.reason or 'no reason given')}"


def _reason(error: aiohttp.ClientError) -> str:
    """Say what went wrong on the wire in the words that an operator would search for."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", error.certificate_error)
            return f"the certificate was refused: {one_line(str(why))}"
        case aiohttp.ClientSSLError():
            return f"TLS failed: {one_line(str(error.os_error))}"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed without an answer"
        case aiohttp.ClientOSError():
            return system_reason(error) or one_line(str(error))
        case aiohttp.ClientPayloadError():
            return "the answer broke off before its end"
        case aiohttp.ClientResponseError():
            return f"the answer is not HTTP: {one_line(error.message)}"
        case _:
            return one_line(str(error)) or type(error).__name__


def system_reason(error: BaseException | None) -> str:
    """Return the operating system's words for `error` or for what caused it, empty when it had none."""
    while error is not None:
        if (
            isinstance(error, OSError)
            and not isinstance(error, ssl.SSLError)  # OpenSSL has numbers of its own
            and error.errno is not None
            and error.errno in errno.errorcode
        ):
            return os.strerror(error.errno).lower()
        error = error.__cause__ or error.__context__
    return ""
