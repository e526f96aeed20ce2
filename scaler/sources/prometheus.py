"""Samples out of a Prometheus (or Thanos, Mimir, VictoriaMetrics), for those who may not reach the pods.

A Prometheus knows what it scraped last, as a rule 15 to 60 s ago: decisions from it are that much later.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import httpx
import orjson
from yarl import URL

from scaler.exposition import read_page, wanted_names
from scaler.exposition.sample import PageError, Sample
from scaler.quoting import one_line, quoted
from scaler.sources.access import Access, authorization, tls_context
from scaler.sources.fetching import FetchError, system_reason
from scaler.sources.source import Endpoint, ReadOptions, Unknown

MAX_AGE_S = 60
"""A pod whose last scrape is older than this is unknown."""

Series = tuple[dict[str, str], str]
"""The labels, `__name__` among them, and the value as Prometheus writes it."""

_JOB_LABELS = ("job", "prometheus", "prometheus_replica")
"""What tells two readings of one page apart: two scrape jobs, or two Prometheus servers."""
_POD_LABELS = ("namespace", "pod", "exported_namespace", "exported_pod")
_PLACE_LABELS = ("__name__", "cluster", "container", "endpoint", "instance", "node", "service")
_SCRAPE_LABELS = frozenset((*_JOB_LABELS, *_POD_LABELS, *_PLACE_LABELS))
"""Labels that are not the page's own."""


class PrometheusSource:
    """Asks one instant query per target and tick, and reads each pod's series as if they were its page."""

    def __init__(self, url: str, access: Access | None = None) -> None:
        """Take the server's address without `/api/v1/query`, say `https://prometheus.monitoring:9090`.

        Raises ValueError when `url` is not an http or https address.
        """
        address = URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            raise ValueError(f"{quoted(url)}: an address like https://prometheus.monitoring:9090 is expected")
        access = access or Access()
        self._url = url.rstrip("/")
        self._tls = tls_context(access)
        self._authorization = authorization(access)
        self._context: ssl.SSLContext | None = None
        self._client = httpx.AsyncClient()

    async def sample(
        self, endpoints: Sequence[Endpoint], options: ReadOptions, deadline_s: float
    ) -> Mapping[str, Sample | Unknown]:
        """Read all pods with one query; see `Source.sample`. A query that fails makes all of them unknown."""
        pods = {endpoint.pod for endpoint in endpoints}
        if not pods:
            return {}
        try:
            async with asyncio.timeout(deadline_s):
                found = by_pod(await self._ask(query(pods, options)), pods)
        except TimeoutError:
            return dict.fromkeys(pods, Unknown(f"{self._url}: timed out after {deadline_s:g} s"))
        except FetchError as error:
            return dict.fromkeys(pods, Unknown(f"{self._url}: {error}"))
        return {pod: self._read(found.get(pod, []), options) for pod in pods}

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def _read(self, series: list[Series], options: ReadOptions) -> Sample | Unknown:
        if not series:
            return Unknown(f"{self._url} has no series of this pod from the last {MAX_AGE_S} s: is it scraped?")
        try:
            return read_page(as_page(series), options.engine)
        except PageError as error:
            return Unknown(f"{self._url} has series of another kind: {error}")

    async def _ask(self, promql: str) -> list[Series]:
        try:
            await self._use_tls(self._tls.get())
            secret = self._authorization.get()
            answer = await self._client.post(
                f"{self._url}/api/v1/query",
                data={"query": promql},
                headers=None if secret is None else {"Authorization": secret},
            )
        except httpx.HTTPError as error:
            reason = system_reason(error) or one_line(str(error)) or type(error).__name__
            raise FetchError(reason) from error
        except OSError as error:
            raise FetchError(f"the scaler's own TLS or secret file cannot be used: {error}") from error
        return _vector(answer)

    async def _use_tls(self, context: ssl.SSLContext) -> None:
        """Start over with new connections when the authorities changed."""
        if context is not self._context:
            old, self._context = self._client, context
            self._client = httpx.AsyncClient(verify=context, timeout=None, trust_env=False)
            await old.aclose()


def query(pods: Iterable[str], options: ReadOptions) -> str:
    """Return the PromQL for all wanted series of `pods` that were scraped within MAX_AGE_S."""
    names = _one_of(wanted_names(options.engine))
    where = _quoted(options.namespace), _one_of(pods)
    return " or ".join(
        f"last_over_time({{__name__=~{names},{namespace_label}={where[0]},{pod_label}=~{where[1]}}}[{MAX_AGE_S}s])"
        for namespace_label, pod_label in (("namespace", "pod"), ("exported_namespace", "exported_pod"))
    )


def by_pod(vector: Iterable[Series], pods: set[str]) -> dict[str, list[Series]]:
    """Return the series of each pod, from one scrape job where several scrape it: adding them would double it."""
    jobs: dict[str, dict[tuple[str, ...], list[Series]]] = defaultdict(lambda: defaultdict(list))
    for series in vector:
        labels, _ = series
        # Where honor_labels is off, a pod label of the page's own became exported_pod: that one is meant.
        pod = labels.get("exported_pod", "")
        pod = pod if pod in pods else labels.get("pod", "")
        if pod in pods:
            jobs[pod][tuple(labels.get(name, "") for name in _JOB_LABELS)].append(series)
    return {pod: max(sorted(found.items()), key=lambda item: len(item[1]))[1] for pod, found in jobs.items()}


def as_page(vector: Iterable[Series]) -> bytes:
    """Return series as the text page that they came from, without the labels that the scrape added."""
    lines = []
    for labels, value in vector:
        own = ",".join(f"{name}={_quoted(text)}" for name, text in labels.items() if name not in _SCRAPE_LABELS)
        lines.append(f"{labels['__name__']}{{{own}}} {value}\n")
    return "".join(lines).encode()


def _vector(answer: httpx.Response) -> list[Series]:
    """Return the series of an instant query's answer. Raises FetchError."""
    try:
        match orjson.loads(answer.content):
            case {"status": "success", "data": {"resultType": "vector", "result": list(result)}}:
                return [(series["metric"], series["value"][1]) for series in result]
            case {"status": "error", "error": str(error)}:
                raise FetchError(f"HTTP {answer.status_code}: {one_line(error)}", answer.status_code)
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        pass
    raise FetchError(f"HTTP {answer.status_code}, no answer of a Prometheus API: {one_line(answer.text)}")


def _one_of(values: Iterable[str]) -> str:
    return _quoted("|".join(re.escape(value) for value in sorted(values)))


def _quoted(text: str) -> str:
    """Quote a string as PromQL and the text format do."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
