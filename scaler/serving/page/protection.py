"""What keeps the page to itself: headers for browsers, and the bearer token where the operator asks for one."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from scaler.sources.access import Reloaded

API = "/api/"

HEADERS: Mapping[str, str] = {
    # Only files of our own, no inline script or style, nothing from elsewhere, in nobody's frame.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers to an answer that is about to be sent."""
    response.headers.update(HEADERS)


def token_of(file: Path) -> Reloaded[bytes]:
    """The token in a file, read again when the file changes. Reading raises OSError when there is none."""

    def load() -> bytes:
        token = file.read_bytes().strip()
        if not token:
            raise OSError(f"{file} is empty")
        return token

    return Reloaded((file,), load)


def asks_for(token: Reloaded[bytes]) -> Middleware:
    """A middleware that lets only those read the API who show the token; the page's own files hold no secret."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(API):
            scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
            right = hmac.compare_digest(shown.strip().encode("utf-8", "surrogateescape"), token.get())
            if scheme.lower() != "bearer" or not right:
                why = "this is not the token" if shown else "this scaler asks for a token"
                return web.json_response({"error": why}, status=401, headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    return check
