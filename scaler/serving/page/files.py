"""The page's own files, served from memory: read and compressed once, when the first visitor comes."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aiohttp import web

_FOLDER = Path(__file__).parent / "static"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class _File:
    content_type: str
    plain: bytes
    packed: bytes
    etag: str


@cache
def _files() -> Mapping[str, _File]:
    """Path below the folder → file; nothing else can be asked for."""
    return {
        path.relative_to(_FOLDER).as_posix(): _file(path)
        for path in sorted(_FOLDER.rglob("*"))
        if path.suffix in _TYPES
    }


def _file(path: Path) -> _File:
    plain = path.read_bytes()
    return _File(
        f"{_TYPES[path.suffix]}; charset=utf-8",
        plain,
        gzip.compress(plain, mtime=0),
        f'"{hashlib.sha256(plain).hexdigest()[:16]}"',
    )


def answer(request: web.Request, name: str) -> web.Response:
    """Answer with a file; a browser that has it is told so. Raises HTTPNotFound."""
    file = _files().get(name)
    if file is None:
        raise web.HTTPNotFound(text=f"the page has no file {name}")
    headers = {"ETag": file.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == file.etag:
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = file.content_type
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=file.packed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=file.plain, headers=headers)
