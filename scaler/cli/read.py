"""`vllm-scaler read FILE|URL|-`: what a metrics page says, what it does not, and why."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from yarl import URL

from scaler.cli.files import MOST_BYTES, TooLong, capped, content
from scaler.exposition import ENGINES, read_page
from scaler.exposition.sample import COUNTERS, HISTOGRAMS, Histogram, PageError, Reading, Sample
from scaler.quoting import one_line, quoted
from scaler.sources.fetching import system_reason
from scaler.targets.load import quantile

TIMEOUT_S = 10.0
WRONG_USE, NO_ENGINE = 2, 3
_GAUGES = ("waiting", "waiting_deferred", "running", "kv_cache_usage")
_FIELDS = (*_GAUGES, *COUNTERS, *HISTOGRAMS)
_HOST_AND_PORT = re.compile(r"[\w.-]{1,253}:\d{1,5}(/|$)")
_NO_TLS = re.compile("wrong version number|record layer failure|http request", re.IGNORECASE)
"""What OpenSSL, by its age, says of an answer in plain HTTP."""
_HEADERS = {"Accept": "text/plain; version=0.0.4", "Accept-Encoding": "identity"}


def read(
    page: Annotated[str, typer.Argument(metavar="FILE|URL|-", help="A file, an http(s) address, or - for stdin.")],
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"The engine, where the page does not tell which it is: {', '.join(ENGINES)}."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for machines.")] = False,
) -> None:
    """Read a metrics page as the scaler reads it: the load, the counters, the latencies, and what is unknown.

    \b
    vllm-scaler read http://127.0.0.1:8000/metrics
    kubectl exec llama-0 -- curl -s localhost:8000/metrics | vllm-scaler read -

    Exit status: 0 it was read, 2 wrong use or the page cannot be had, 3 it is no engine's page.
    """
    if engine is not None and engine not in ENGINES:
        raise _fail(f"no engine {quoted(engine)} is known; known are {', '.join(ENGINES)}", WRONG_USE)
    text, trouble = _get(page)
    try:
        if trouble:
            raise PageError(f"{trouble}: {_why_no_page(text)}{_is_it_elsewhere(page)}")
        sample = read_page(text, engine)
    except PageError as error:
        raise _fail(f"{one_line(page)}: {error}", NO_ENGINE) from None
    if as_json:
        print(json.dumps(_sample_as_json(sample), indent=2))
    else:
        _print(sample, len(text))


def _get(page: str) -> tuple[bytes, str]:
    """Return the page and, if an answer was no 200, what it was. What cannot be had at all ends the program."""
    shown = one_line(page) or "''"
    try:
        if page == "-":
            return capped(sys.stdin.buffer), ""
        if "://" in page:
            return _fetch(_address(page))
        return content(Path(page)), ""
    except TooLong as error:
        raise _fail(f"{shown}: {error}: that is no metrics page", WRONG_USE) from None
    except httpx.HTTPError as error:
        why = system_reason(error) or one_line(str(error)) or type(error).__name__
        why = "it speaks no TLS; right is http://…" if _NO_TLS.search(why) else why
        raise _fail(f"{shown} cannot be reached: {why}", WRONG_USE) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        path = "" if "/" in page else "/metrics"
        right = f"; for a server right is http://{shown}{path}" if _HOST_AND_PORT.match(page) else ""
        raise _fail(f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}{right}", WRONG_USE) from None


def _address(text: str) -> str:
    """Check an address. What is wrong with it ends the program."""
    try:
        url = URL(text)
        right = url.scheme in ("http", "https") and url.host and 0 < (url.port or 0) < 65536
        httpx.URL(text).host.encode("idna")
    except (ValueError, httpx.InvalidURL):
        right = False
    if not right:
        raise _fail(f"{quoted(text)} is no address; right is http://10.0.0.7:8000/metrics or https://…", WRONG_USE)
    return text


def _fetch(url: str) -> tuple[bytes, str]:
    with httpx.stream("GET", url, headers=_HEADERS, timeout=TIMEOUT_S, follow_redirects=True) as answer:
        body = bytearray()
        for part in answer.iter_bytes():
            body += part
            if len(body) > MOST_BYTES:
                raise TooLong
        return bytes(body), "" if answer.status_code == httpx.codes.OK else f"HTTP {answer.status_code}"


def _why_no_page(text: bytes) -> str:
    """Say what an answer that was no success holds instead."""
    try:
        return f"the answer reads like a page of {read_page(text).engine}, but its status says otherwise"
    except PageError as error:
        return str(error)


def _is_it_elsewhere(page: str) -> str:
    return f"; is it {one_line(page).rstrip('/')}/metrics?" if "://" in page and URL(page).path == "/" else ""


def _sample_as_json(sample: Sample) -> dict[str, Any]:
    engines = {label: _reading_as_json(each) for label, each in sample.engines.items()}
    return {"engine": sample.engine, **_reading_as_json(sample), "engines": engines}


def _reading_as_json(reading: Reading) -> dict[str, Any]:
    """Return every field; null for what is unknown (`unknown` says why) or not offered."""
    return {
        **{name: getattr(reading, name) for name in _GAUGES},
        "asleep": reading.asleep,
        "counters": dict(reading.counters),
        "histograms": {name: _histogram_as_json(each) for name, each in reading.histograms.items()},
        "unknown": dict(reading.unknown),
    }


def _histogram_as_json(histogram: Histogram) -> dict[str, Any]:
    """Return the buckets, cumulative as on the page, and quantiles in seconds; null if nothing was observed."""
    return {
        "count": histogram.counts[-1],
        "sum": histogram.sum,
        "p50": _quantile(0.5, histogram),
        "p95": _quantile(0.95, histogram),
        "buckets": {_bound(b): count for b, count in zip(histogram.bounds, histogram.counts, strict=True)},
    }


def _quantile(q: float, histogram: Histogram) -> float | None:
    return quantile(q, histogram.bounds, histogram.counts) if histogram.counts[-1] else None


def _bound(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else repr(bound)


def _print(sample: Sample, size: int) -> None:
    console = Console()
    console.print(f"[bold]{sample.engine}[/]: a page of {size:,} bytes, {_plural(len(sample.engines), 'engine')}")
    console.print(_totals(sample))
    if len(sample.engines) > 1:
        console.print(_engines(sample))
    for name, reason in sample.unknown.items():
        console.print(f"[yellow]{name} is unknown:[/] {escape(reason)}", soft_wrap=True)


def _totals(sample: Sample) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    for name in _FIELDS:
        if cell := _cell(sample, name):
            table.add_row(name, cell)
    if sample.asleep:
        table.add_row("asleep", "yes")
    return table


def _engines(sample: Sample) -> Table:
    """Return the engines, a line each, with the load that any of them shows."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("engine", overflow="fold")
    shown = [name for name in _GAUGES if any(_cell(engine, name) for engine in sample.engines.values())]
    for name in shown:
        table.add_column(name, justify="right")
    for label, engine in sample.engines.items():
        table.add_row(escape(label), *(_cell(engine, name) for name in shown))
    return table


def _cell(reading: Reading, name: str) -> str:
    """Return a value for people; empty for what the engine does not offer."""
    if name in reading.unknown:
        return "[yellow]unknown[/]"
    if name in reading.histograms:
        histogram = reading.histograms[name]
        p50, p95 = _quantile(0.5, histogram), _quantile(0.95, histogram)
        times = "" if p50 is None or p95 is None else f", p50 {p50:.3g} s, p95 {p95:.3g} s"
        return f"{histogram.counts[-1]:,.0f}{times}"
    value = reading.counters.get(name, getattr(reading, name, None))
    if value is None:
        return ""
    return f"{value:.2%}" if name == "kv_cache_usage" else f"{value:,.10g}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _fail(text: str, status: int) -> typer.Exit:
    typer.echo(text, err=True)
    return typer.Exit(status)
