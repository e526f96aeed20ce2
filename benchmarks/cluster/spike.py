"""A spike at the engines: how soon more replicas are asked for, and how soon they are ready

Three equal Deployments of two idle pods (64 batch slots each, ready 2 s after they are made) stand side by side in one
cluster: a real API server, scheduler, KEDA and HPA, which looks every 15 s. Only the pods are played, over real HTTP.
250 requests arrive at all three at once, at a moment that falls anywhere in those 15 s; each way wants more than the
maximum, so all go from 2 to 12. A spike is over when all are ready; the next one comes when all are back at 2.

- *KEDA's prometheus trigger*: `sum(vllm:num_requests_waiting)`, threshold 5, as vLLM's production stack sets it up,
  with a real Prometheus that scrapes every 15 s. One pod's queue alone already asks for the maximum, so that one
  scrape is enough. `pollingInterval` is KEDA's default: from one replica on, the HPA's own question is what counts.
- *through the HPA*: this scaler with the preset `pulse` and `delivery: hpa`.
- *direct delivery*: the preset `pulse` as it is, where the chart's value `delivery.direct` allows it.

All three HPAs have the same behaviour: tolerance 0, no stabilization, any number of pods at once. The p95 is by nearest
rank: of 12 spikes, the slowest.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from benchmarks import Row
from benchmarks.cluster._counts import Counts
from benchmarks.cluster._prometheus import prometheus_of
from inference.simulated import TIME_BOUND
from tests.cluster.control_plane import Manifest
from tests.cluster.fleet import ClusterFleet
from tests.cluster.keda import NAMESPACE as SCALER_NAMESPACE
from tests.cluster.keda import KedaCluster
from tests.cluster.release import Release
from tests.cluster.workloads import deployment, scaled_object

SPIKES = 12
SEED = 20
BEFORE, AFTER = 2, 12
REQUESTS = 250
PROFILE = replace(TIME_BOUND, max_num_seqs=64)
START_UP = "2s"
HPA_PERIOD_S = 15.0
SETTLE_S = 3.0
"""Between two spikes, beside the random part: the rest of the last one is over on every page and in every window."""
QUICKLY_DOWN = {"downscaleDelay": "2s"}
"""So that the next spike can come soon; upwards it changes nothing."""
SOON_S = 180.0

KEDA, HPA, DIRECT = "keda-prometheus", "through-the-hpa", "direct-delivery"
WORDS = {HPA: "through the HPA", DIRECT: "direct delivery"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds after the spike."""

    requested: float
    """Until `spec.replicas` was the new count."""
    ready: float
    """Until so many pods were ready."""


def rows() -> Iterator[Row]:
    """A row for each moment and way; what stands beside is always KEDA's prometheus trigger."""
    with KedaCluster() as cluster, ExitStack() as stack:
        release = stack.enter_context(Release(cluster, SCALER_NAMESPACE))
        release.install("delivery: {direct: true}")
        scaler = release.run()
        cluster.wait_for("a ready scaler", scaler.is_ready)
        namespace = cluster.create_namespace("bench")
        prometheus = prometheus_of(cluster, namespace, f"app={KEDA}")
        triggers = {
            KEDA: _query(prometheus.address, namespace),
            HPA: _ours(scaler.grpc, delivery="hpa"),
            DIRECT: _ours(scaler.grpc),
        }
        cluster.apply(*(deployment(name, replicas=BEFORE, startup=START_UP) for name in triggers), namespace=namespace)
        counts = stack.enter_context(Counts(cluster, namespace))
        fleets = {
            name: stack.enter_context(ClusterFleet(cluster, f"app={name}", namespace=namespace, profile=PROFILE))
            for name in triggers
        }
        cluster.apply(*(_scaled_object(*pair) for pair in triggers.items()), namespace=namespace)
        answers = list(_answers(cluster, fleets, counts))
    yield from _rows({name: [answer[name] for answer in answers] for name in triggers})


def _answers(
    cluster: KedaCluster, fleets: Mapping[str, ClusterFleet], counts: Counts
) -> Iterator[Mapping[str, Answer]]:
    phases = random.Random(SEED)
    for _ in range(SPIKES):
        for fleet in fleets.values():
            fleet.hang_up()
        for name in fleets:
            cluster.wait_for(f"{BEFORE} replicas of {name}", partial(_is, counts, name, BEFORE), timeout_s=SOON_S)
        time.sleep(SETTLE_S + phases.uniform(0.0, HPA_PERIOD_S))
        began = {}
        for name, fleet in fleets.items():
            began[name] = time.monotonic()
            fleet.send(REQUESTS)
        for name in fleets:
            cluster.wait_for(f"{AFTER} replicas of {name}", partial(_is, counts, name, AFTER), timeout_s=SOON_S)
        yield {name: _answer(counts, name, moment) for name, moment in began.items()}


def _is(counts: Counts, name: str, replicas: int) -> bool:
    latest = counts.latest(name)
    return latest is not None and (latest.requested, latest.ready) == (replicas, replicas)


def _answer(counts: Counts, name: str, began: float) -> Answer:
    seen = counts.since(name, began)
    requested = next(count.at for count in seen if count.requested == AFTER)
    ready = next(count.at for count in seen if count.ready == AFTER)
    return Answer(requested - began, ready - began)


def _query(prometheus: str, namespace: str) -> Manifest:
    metadata = {
        "serverAddress": f"http://{prometheus}",
        "query": f'sum(vllm:num_requests_waiting{{namespace="{namespace}"}})',
        "threshold": "5",
    }
    return {"type": "prometheus", "metadata": metadata}


def _ours(address: str, **metadata: str) -> Manifest:
    more = {"policy": "pulse", **QUICKLY_DOWN, **metadata}
    return {"type": "external-push", "metadata": {"scalerAddress": address, **more}}


def _scaled_object(name: str, trigger: Manifest) -> Manifest:
    made = scaled_object(name, "", maximum=AFTER)
    return {**made, "spec": {**made["spec"], "minReplicaCount": BEFORE, "triggers": [trigger]}}


def _rows(answers: Mapping[str, Sequence[Answer]]) -> Iterator[Row]:
    for way, most in ((DIRECT, 2.0), (HPA, HPA_PERIOD_S + 2.0)):
        for quantile, word in ((0.5, "median"), (0.95, "p95")):
            ours, keda = (_quantile(quantile, [a.requested for a in answers[name]]) for name in (way, KEDA))
            least = 10.0 if way == DIRECT else 1.0
            yield Row(
                what=f"{WORDS[way]}: {BEFORE} → {AFTER} in spec.replicas, {word} of {SPIKES} spikes",
                measured=f"{ours:.2f} s",
                beside=f"{keda:.2f} s, KEDA's prometheus trigger",
                ratio=keda / ours,
                budget=f"≤ {most:g} s" + (f", ≥ {least:g}×" if least > 1 else ""),
                held=ours <= most and keda / ours >= least,
            )
    for way in (DIRECT, HPA):
        for quantile, word in ((0.5, "median"), (0.95, "p95")):
            ours, keda = (_quantile(quantile, [a.ready for a in answers[name]]) for name in (way, KEDA))
            yield Row(
                what=f"{WORDS[way]}: all {AFTER} pods ready, {word}",
                measured=f"{ours:.2f} s",
                beside=f"{keda:.2f} s, KEDA's prometheus trigger",
                ratio=keda / ours,
                budget="",
                held=True,
            )


def _quantile(q: float, values: Sequence[float]) -> float:
    """By nearest rank: one of the values."""
    return sorted(values)[math.ceil(q * len(values)) - 1]
