"""What a page is that no engine printed, and what to check: the words of a `PageError`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from scaler.exposition.text import starts_with

_SHOWN = 120
_MAX_JSON_BYTES = 1 << 16


def diagnose(page: bytes) -> str:
    """Say in one line what `page` is, for a page on which no engine shows its load."""
    start = page[:4096].lstrip()
    if not start:
        return "the page is empty: is this the metrics path, and has the engine logged anything yet?"
    if start.startswith((b"{", b"[")) and (words := _json(page)) is not None:
        return words
    if start[:1] == b"<":
        title = re.search(rb"<title>\s*+([^<]*+)", start, re.IGNORECASE)
        return f"an HTML page ({_quoted(title[1] if title else start)}) instead of metrics: is this the metrics path?"
    for speaks, words in _KINDS:
        if speaks(page):
            return words
    return f"no metrics page: it begins with {_quoted(start)}"


def _json(page: bytes) -> str | None:
    """Return what a JSON answer says; None if it is none."""
    if len(page) > _MAX_JSON_BYTES:
        return "a long JSON answer instead of metrics"
    try:
        answer = json.loads(page)
    except (ValueError, RecursionError):
        return None
    if isinstance(answer, list):
        return "a JSON list instead of metrics: trtllm-serve's Prometheus page is /prometheus/metrics"
    texts = [answer[key] for key in ("error", "detail", "message") if key in answer]
    if texts and isinstance(texts[0], dict):
        texts = [texts[0].get("message", texts[0])]
    return f"a JSON answer instead of metrics: {_quoted(str(texts[0] if texts else answer).encode())}"


def _quoted(text: bytes) -> str:
    """Return the beginning of `text` as one printable line in quotes."""
    line = " ".join(text[: 4 * _SHOWN].decode("utf-8", "replace").split())
    printable = "".join(char if char.isprintable() else "�" for char in line)
    return f'"{printable[:_SHOWN]}{"…" * (len(printable) > _SHOWN)}"'


_ANY_METRIC = re.compile(
    rb"(?m)^[ \t]*+(?:#[ \t]++TYPE[ \t]|"
    rb"[a-zA-Z_:][a-zA-Z0-9_:]*+(?:[ \t]*+\{[^\n]*\})?+[ \t]++[-+.0-9eEInNaf]++[ \t\r]*+$)"
)

_Kind = tuple[Callable[[bytes], bool], str]
_KINDS: tuple[_Kind, ...] = (
    (
        starts_with(["DCGM_FI_"]),
        "the page of a DCGM exporter, not of an engine: it tells how busy GPUs are, and has no requests",
    ),
    (
        starts_with(["llm_d_epp_", "inference_extension_", "inference_pool_"]),
        "the page of a gateway's endpoint picker, not of an engine",
    ),
    (
        starts_with(["ray_"]),
        "a Ray node's page without Ray Serve and without vLLM: no replica runs there, or nothing was reported yet",
    ),
    (
        lambda page: _ANY_METRIC.search(page) is not None,
        "a metrics page without any engine's series. Does the engine run with --disable-log-stats (vLLM), or without"
        " --enable-metrics (SGLang) or --metrics (llama.cpp)? Or is this another server's port (a proxy, a sidecar)?",
    ),
)
"""How a page is known, and what it is; the first that fits."""
