"""The scaler's own metrics. What is known of targets is read from them at the moment of the scrape.

So nothing has to be kept up to date, and the series of a target go when the target goes. Families:

| name | labels | meaning |
|---|---|---|
| `vllm_scaler_desired_replicas` | target | replica count that was decided |
| `vllm_scaler_demand_replicas` | target, `signal` | replicas that one demand signal asks for, a real number |
| `vllm_scaler_emission` | target | metric value given to KEDA |
| `vllm_scaler_arrives_at_replicas` | target | count at which the HPA arrives with the value of the decision |
| `vllm_scaler_requested_replicas` | target | `spec.replicas` of the scale target |
| `vllm_scaler_ready_replicas` | target | pods that serve |
| `vllm_scaler_starting_replicas` | target | pods on the way |
| `vllm_scaler_terminating_replicas` | target | pods that drain |
| `vllm_scaler_unschedulable_replicas` | target | pods that no node takes |
| `vllm_scaler_warm_replicas` | target | replicas beyond the wanted ones that nodes should have room for |
| `vllm_scaler_room_replicas` | target | replicas for which such room is there, as far as it is known |
| `vllm_scaler_unschedulable_seconds` | target | for how long the oldest of them has waited; 0 where there is none |
| `vllm_scaler_capacity_blocked` | target, `lacks` | 1 while pods, lacking this, find no node and grow no more |
| `vllm_scaler_unknown_pods` | target | ready pods that could not be read |
| `vllm_scaler_waiting_requests` | target | requests that wait, absent when unknown |
| `vllm_scaler_running_requests` | target | requests in running batches, absent when unknown |
| `vllm_scaler_latency_seconds` | target, `latency` | at the policy's percentile; absent when nothing was observed |
| `vllm_scaler_slo_seconds` | target, `latency` | its objective, where there is one |
| `vllm_scaler_start_up_seconds` | target, `stage` | median time of a start and of its parts; absent until seen |
| `vllm_scaler_start_up_p90_seconds` | target, `stage` | the same, 90 % of them took less |
| `vllm_scaler_decision_time_seconds` | target | Unix time of the latest decision |
| `vllm_scaler_target_state` | target, `state` | 1 for the state that the target is in |
| `vllm_scaler_trigger_invalid` | target | 1 while its metadata are wrong: not served, or as by the last valid ones |
| `vllm_scaler_keda_silent` | target | 1 while KEDA should ask for the target and does not |
| `vllm_scaler_changes_total` | target, `rule` | changes of the desired count, by the rule that made them |
| `vllm_scaler_pod_reads_total` | target, `outcome` | pods read: `read` or `unknown` |
| `vllm_scaler_page_bytes_total` | target | bytes of the metrics pages that were read |
| `vllm_scaler_leader` | | 1 while this replica is the one that KEDA asks |
| `vllm_scaler_tick_duration_seconds` | | histogram of the time that a tick takes, reading included |
| `vllm_scaler_rpc_duration_seconds` | `method`, `code` | histogram of the time that unary calls take |

The labels of a target are `namespace`, `scaled_object` and `trigger`; latencies are `ttft`, `tpot`, `itl`, `e2e` and
`queue_time`. The stages of a start are `all` (from asked for to ready), `warm` (the same of starts that a node took at
once), `cold` (of those that waited for a node), and the parts: `node` (that wait), `image` (from scheduled to running
containers) and `load` (from there to ready).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakKeyDictionary

import grpc
from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scaler.cluster.model import Workload
from scaler.exposition.sample import Sample
from scaler.sources.source import Unknown
from scaler.targets import Outcomes, Record, Target, Targets

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each histogram, of use to nobody

TICK_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
RPC_BUCKETS_S = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0)

TARGET_LABELS = ("namespace", "scaled_object", "trigger")

Value = Callable[[Record], float | None]
"""A value of a decision; None when it is unknown, and then there is no sample."""

VALUES: Mapping[str, tuple[str, Value]] = {
    "desired_replicas": ("Replica count that was decided", lambda r: r.decision.desired),
    "emission": ("Metric value given to KEDA", lambda r: r.emission),
    "arrives_at_replicas": (
        "Count at which the HPA arrives with the value of the decision",
        lambda r: r.decision.emission.arrives_at,
    ),
    "requested_replicas": (
        "spec.replicas of the scale target",
        lambda r: r.observation.replicas.requested,
    ),
    "ready_replicas": ("Pods that serve", lambda r: r.observation.replicas.ready),
    "starting_replicas": ("Pods on the way", lambda r: r.observation.replicas.starting),
    "terminating_replicas": ("Pods that drain", lambda r: r.observation.replicas.terminating),
    "unschedulable_replicas": ("Pods that no node takes", lambda r: r.observation.replicas.unschedulable),
    "warm_replicas": ("Replicas beyond the wanted ones that nodes should have room for", lambda r: r.decision.warm),
    "room_replicas": (
        "Replicas for which such room is there, as far as it is known",
        lambda r: r.observation.replicas.room,
    ),
    "unschedulable_seconds": ("Longest wait of them", lambda r: r.observation.replicas.unschedulable_s),
    "unknown_pods": ("Ready pods that could not be read", lambda r: len(r.observation.load.unknown)),
    "waiting_requests": ("Requests that wait", lambda r: r.observation.load.waiting),
    "running_requests": ("Requests in running batches", lambda r: r.observation.load.running),
    "decision_time_seconds": ("Unix time of the latest decision", lambda r: r.time),
}

By = Callable[[Target], Mapping[str, float]]
"""Values of a target by one more label."""


def _latencies(target: Target) -> Mapping[str, float]:
    """Return the latencies in seconds, at the percentile of the requests that should meet the objectives."""
    if target.latest is None:
        return {}
    quantile = f"p{target.settings.percentile}"
    return {name: getattr(seen, quantile) for name, seen in target.latest.observation.load.latency.items()}


def _objectives(target: Target) -> Mapping[str, float]:
    """Return the objectives in seconds, by the latency that each is for."""
    settings = target.settings
    found = {"ttft": settings.ttft_slo_s, "tpot": settings.itl_slo_s, "e2e": settings.e2e_slo_s}
    return {name: objective for name, objective in found.items() if objective is not None}


def _blocked(target: Target) -> Mapping[str, float]:
    """Return 1 by what is lacking, nothing where more replicas would find nodes."""
    record = target.latest
    return {record.observation.replicas.lacks or "unknown": 1.0} if record and record.decision.blocked else {}


def _start_up(quantile: Literal["median", "p90"]) -> By:
    """Return how long starts and their parts took, in seconds."""

    def by_stage(target: Target) -> Mapping[str, float]:
        start_up = target.latest.observation.start_up if target.latest else None
        if start_up is None:
            return {}
        stages = ("warm", "cold", "node", "image", "load")
        seen = {"all": start_up} | {stage: took for stage in stages if (took := getattr(start_up, stage))}
        return {stage: getattr(took, quantile) for stage, took in seen.items()}

    return by_stage


LABELLED: Mapping[str, tuple[str, str, By]] = {
    "demand_replicas": (
        "Replicas that one demand signal asks for",
        "signal",
        lambda target: target.latest.decision.demand if target.latest else {},
    ),
    "capacity_blocked": ("1 while pods find no node for longer than one takes", "lacks", _blocked),
    "latency_seconds": ("Latency at the policy's percentile", "latency", _latencies),
    "slo_seconds": ("Objective for a latency", "latency", _objectives),
    "start_up_seconds": ("Median time of a start and of its parts", "stage", _start_up("median")),
    "start_up_p90_seconds": ("90th percentile of the same", "stage", _start_up("p90")),
    "target_state": ("1 for the state that the target is in", "state", lambda target: {target.state.value: 1.0}),
}


def show_leader(registry: CollectorRegistry, leads: Callable[[], bool]) -> None:
    """Register whether this replica leads, which is asked at each scrape."""
    leader = Gauge("vllm_scaler_leader", "1 while this replica is the one that KEDA asks", registry=registry)
    leader.set_function(leads)


class RpcMetrics:
    """How long unary calls take, by method and status code."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "vllm_scaler_rpc_duration_seconds",
            "Time that unary calls take",
            ("method", "code"),
            buckets=RPC_BUCKETS_S,
            registry=registry,
        )

    def observe(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """Count a call that took `seconds`."""
        self._durations.labels(method, code.name).observe(seconds)


@dataclass(slots=True)
class _Counts:
    changes: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    page_bytes: int = 0


class TargetMetrics(Collector):
    """The families of targets: made from their latest decisions at each scrape, but for what has to be counted."""

    def __init__(self, targets: Targets, registry: CollectorRegistry) -> None:
        self._targets = targets
        self._durations = Histogram(
            "vllm_scaler_tick_duration_seconds",
            "Time that a tick takes, reading included",
            buckets=TICK_BUCKETS_S,
            registry=registry,
        )
        registry.register(self)
        self._counts: WeakKeyDictionary[Target, _Counts] = WeakKeyDictionary()

    def note(self, target: Target, record: Record, workload: Workload, outcomes: Outcomes) -> None:  # noqa: ARG002
        """Count what a tick brought; an observer of the targets' world."""
        counts = self._counts.setdefault(target, _Counts())
        if record.decision.desired != record.before:
            counts.changes[record.decision.reason.partition(":")[0]] += 1
        unknown = sum(isinstance(outcome, Unknown) for outcome in outcomes.values())
        counts.reads["unknown"] += unknown
        counts.reads["read"] += len(outcomes) - unknown
        counts.page_bytes += sum(outcome.page_bytes for outcome in outcomes.values() if isinstance(outcome, Sample))
        self._durations.observe(record.took_s)

    def collect(self) -> Iterator[Metric]:
        """One family for each value, and in it the samples of every target."""
        targets = list(self._targets)
        for name, (text, value) in VALUES.items():
            family = GaugeMetricFamily(f"vllm_scaler_{name}", text, labels=TARGET_LABELS)
            for target in targets:
                if target.latest and (found := value(target.latest)) is not None:
                    family.add_metric(_labels(target), found)
            yield family
        for name, (text, label, values) in LABELLED.items():
            family = GaugeMetricFamily(f"vllm_scaler_{name}", text, labels=(*TARGET_LABELS, label))
            for target in targets:
                for key, found in values(target).items():
                    family.add_metric((*_labels(target), key), found)
            yield family
        yield from self._troubles(targets)
        yield from self._counted(targets)

    def _troubles(self, targets: Iterable[Target]) -> Iterator[Metric]:
        silent = GaugeMetricFamily(
            "vllm_scaler_keda_silent",
            "1 while KEDA should ask for the target and does not",
            labels=TARGET_LABELS,
        )
        invalid = GaugeMetricFamily(
            "vllm_scaler_trigger_invalid",
            "1 while its metadata are wrong: not served, or as by the last valid ones",
            labels=TARGET_LABELS,
        )
        for target in targets:
            silent.add_metric(_labels(target), float(bool(target.unasked)))
            invalid.add_metric(_labels(target), float(bool(target.invalid)))
        for trigger in self._targets.invalid:
            invalid.add_metric((trigger.namespace, trigger.name, trigger.trigger), 1.0)
        yield from (silent, invalid)

    def _counted(self, targets: Iterable[Target]) -> Iterator[Metric]:
        changes = CounterMetricFamily(
            "vllm_scaler_changes",
            "Changes of the desired count, by the rule that made them",
            labels=(*TARGET_LABELS, "rule"),
        )
        reads = CounterMetricFamily(
            "vllm_scaler_pod_reads", "Pods read, and pods that could not be", labels=(*TARGET_LABELS, "outcome")
        )
        page_bytes = CounterMetricFamily(
            "vllm_scaler_page_bytes", "Bytes of the metrics pages that were read", labels=TARGET_LABELS
        )
        for target in targets:
            labels, counts = _labels(target), self._counts.get(target, _Counts())
            page_bytes.add_metric(labels, counts.page_bytes)
            for family, values in ((changes, counts.changes), (reads, counts.reads)):
                for label, value in values.items():
                    family.add_metric((*labels, label), value)
        yield from (changes, reads, page_bytes)


def _labels(target: Target) -> tuple[str, str, str]:
    return target.namespace, target.name, target.trigger
