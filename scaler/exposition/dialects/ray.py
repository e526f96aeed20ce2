"""Ray's metrics agent (one page for each node): vLLM inside Ray, and Ray Serve's own queues.

Ray prefixes every metric with `ray_`; vLLM 0.10 and older kept its colon (`ray_vllm:`). A gauge that is missing here is
unknown, not 0: Ray 2.52 to 2.56 clear gauges at every scrape, and newer versions drop one that was not set for two
report intervals. But a node that routes no request never had a queue: what another node of the target shows is enough. https://docs.ray.io/en/latest/serve/monitoring.html#metrics
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scaler.exposition import combining
from scaler.exposition.combining import REQUESTS, Series, Unknown
from scaler.exposition.dialect import Dialect, Metric, sample
from scaler.exposition.dialects import vllm
from scaler.exposition.sample import PageError, Reading, Sample
from scaler.exposition.text import Labels, Page, PageReader

QUEUED = "ray_serve_deployment_queued_queries"
"""Requests in one handle's queue, on the node of the proxy or replica that holds the handle."""
ONGOING = "ray_serve_num_ongoing_requests_at_replicas"
"""Requests that one handle has sent to replicas. Read only to learn who holds a handle."""
PROCESSING = "ray_serve_replica_processing_queries"
"""Requests in one replica."""

_Cell = tuple[str, str]
"""Metric and deployment."""


class _Ray(Dialect):
    """Adds up the engines and the handles' queues of a page.

    A request in a queue has not reached its engine, and one that a replica processes has: so the engines' numbers
    count for what runs wherever there are any, and only without them the replicas' own.
    """

    def read(self, page: bytes) -> Sample:
        """Read the page of one node. Raises PageError for one without Ray Serve and without vLLM."""
        serve = _SERVE.read(page)
        deployments = _deployments(serve)
        try:
            engines = super().read(page).engines
        except PageError:
            engines = {}
            if not deployments and not self.speaks(page):
                raise
        if engines:
            deployments = {name: replace(each, running=None) for name, each in deployments.items()}
        missing = {} if engines and not deployments else _missing(serve, engines)
        readings = {**_unreadable(serve, missing), **deployments, **engines}
        return sample(self.name, combining.total({"": Reading(unknown=missing), **readings}), readings)

    def engine_of(self, labels: Labels) -> str:
        """Return replica and engine: each replica calls its first engine 0. Old versions name only the process."""
        replica = labels.get("ReplicaId") or labels.get("WorkerId", "")
        return f"{replica}/{labels.get('engine', '0')}"


def _deployments(serve: Page[_Cell, Series]) -> dict[str, Reading]:
    """Return what Serve says about each deployment.

    A replica that itself holds a handle forwards its requests: they wait or run further down, and count there.
    """
    forwarding = {
        dict(series.labels).get("WorkerId", "")
        for (metric, _), handles in serve.cells.items()
        if metric != PROCESSING
        for series in handles
    }
    readings: dict[str, Reading] = {}
    for deployment in dict.fromkeys(deployment for _, deployment in serve.cells):
        queues = serve.cells.get((QUEUED, deployment), {})
        replicas = serve.cells.get((PROCESSING, deployment), {})
        own = {s: value for s, value in replicas.items() if dict(s.labels).get("WorkerId") not in forwarding}
        readings[deployment] = _reading(serve, queues or None, own if replicas else None)
    return readings


def _reading(
    serve: Page[_Cell, Series], queues: Mapping[Series, float] | None, replicas: Mapping[Series, float] | None
) -> Reading:
    values: dict[str, float] = {}
    unknown: dict[str, str] = {}
    for field, metric, cell in (("waiting", QUEUED, queues), ("running", PROCESSING, replicas)):
        try:
            if metric in serve.bad:
                raise Unknown(f"a line of {metric} cannot be read: {serve.bad[metric].first}")
            if cell is not None:
                values[field] = combining.gauge(metric, cell, REQUESTS)
        except Unknown as why:
            unknown[field] = str(why)
    return Reading(waiting=values.get("waiting"), running=values.get("running"), unknown=unknown)


def _missing(serve: Page[_Cell, Series], engines: Mapping[str, Reading]) -> dict[str, str]:
    """Return why a page on which Serve shows anything does not tell the whole load."""
    shown = {metric for metric, _ in serve.cells}
    needed = {"waiting": QUEUED} if engines else {"waiting": QUEUED, "running": PROCESSING}
    return {
        field: f"no {metric} on the page: Ray shows a gauge only for a while after it was set"
        for field, metric in needed.items()
        if metric not in shown
    }


def _unreadable(serve: Page[_Cell, Series], missing: Mapping[str, str]) -> dict[str, Reading]:
    """Return what a page would tell if all of it could be read: another page cannot stand in for that."""
    metrics = {"waiting": QUEUED, "running": PROCESSING}
    unknown = {
        field: f"a line of {metric} cannot be read: {serve.bad[metric].first}"
        for field, metric in metrics.items()
        if field in missing and metric in serve.bad
    }
    return {"unreadable": Reading(unknown=unknown)} if unknown else {}


def _place(name: str, labels: Labels) -> tuple[_Cell, Series]:
    deployment = "/".join([labels[part] for part in ("application", "deployment") if part in labels])
    return (name, deployment), Series(tuple(sorted(labels.items())))


def _in_ray(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    return tuple(replace(metric, name=f"ray_{metric.name}") for metric in metrics)


_SERVE = PageReader((QUEUED, ONGOING, PROCESSING), _place)

DIALECT = _Ray(
    name="ray",
    prefixes=("ray_serve_", "ray_vllm:"),
    waiting=_in_ray(vllm.DIALECT.waiting),
    running=_in_ray(vllm.DIALECT.running),
    kv_cache_usage=_in_ray(vllm.DIALECT.kv_cache_usage),
    waiting_deferred=_in_ray(vllm.DIALECT.waiting_deferred),
    counters={name: _in_ray(metrics) for name, metrics in vllm.DIALECT.counters.items()},
    histograms={name: _in_ray(metrics) for name, metrics in vllm.DIALECT.histograms.items()},
    idle_is_zero=False,
    holds_s=20.0,
    shared=frozenset({"waiting", "running"}),  # a queue is where a router is, a replica where it runs
    hint="do Serve's replicas run on this node, and has the first report (10 s) come?",
)
