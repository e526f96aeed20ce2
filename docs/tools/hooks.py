"""What mkdocs does beyond its own: links to other folders and to files outside of docs/ become plain text."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Take away the links of a page that lead out of docs/ or to a folder, and keep their words."""
    folder = posixpath.dirname(page.file.src_uri)

    def kept(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, link[2]))
        return link[1] if place.startswith("../") or link[2].endswith("/") else link[0]

    return _LINK.sub(kept, markdown)
