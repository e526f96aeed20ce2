"""What mkdocs does beyond its own: links that leave docs/ become plain text, since a site has only its own files."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Take away the links of a page that lead to files outside of docs/, and keep their words."""
    folder = posixpath.dirname(page.file.src_uri)

    def kept(link: re.Match[str]) -> str:
        leaves = posixpath.normpath(posixpath.join(folder, link[2])).startswith("../")
        return link[1] if leaves else link[0]

    return _LINK.sub(kept, markdown)
