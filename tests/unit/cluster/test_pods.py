from __future__ import annotations

from typing import Any

import pytest

from scaler.cluster.model import Phase, Pod
from scaler.cluster.pods import parse_pod
from scaler.cluster.times import unix
from tests.unit.cluster.objects import CREATED, condition, pod

LATER = "2026-01-31T12:01:00Z"
MUCH_LATER = "2026-01-31T12:05:00Z"

WAITING_FOR_A_GPU = condition(
    "PodScheduled", False, LATER, reason="Unschedulable", message="0/4 nodes are available: 4 Insufficient gpu."
)
SCHEDULED = condition("PodScheduled", True, LATER)
READY = condition("Ready", True, MUCH_LATER)
NOT_READY = condition("Ready", False, CREATED)


def parsed(item: dict[str, Any], before: dict[str, Any] | None = None) -> Pod:
    earlier = None if before is None else parse_pod(before, None)
    found = parse_pod(item, earlier)
    assert found is not None
    return found.pod


@pytest.mark.parametrize(
    ("item", "phase", "since", "reason"),
    [
        (pod("p"), Phase.STARTING, CREATED, ""),
        (pod("p", NOT_READY, SCHEDULED), Phase.STARTING, LATER, ""),
        (pod("p", READY, SCHEDULED), Phase.READY, MUCH_LATER, ""),
        (
            pod("p", WAITING_FOR_A_GPU),
            Phase.UNSCHEDULABLE,
            LATER,
            "0/4 nodes are available: 4 Insufficient gpu.",
        ),
        (
            pod("p", condition("PodScheduled", False, reason="SchedulingGated", message="gated by a queue")),
            Phase.STARTING,
            CREATED,
            "SchedulingGated: gated by a queue",
        ),
        (
            pod("p", READY, deletionTimestamp=MUCH_LATER, deletionGracePeriodSeconds=240),
            Phase.TERMINATING,
            LATER,
            "",
        ),
        (pod("p", WAITING_FOR_A_GPU, deletionTimestamp=LATER), Phase.TERMINATING, LATER, ""),
    ],
)
def test_phase_of_a_pod_and_since_when(item: dict[str, Any], phase: Phase, since: str, reason: str) -> None:
    found = parsed(item)
    assert (found.phase, found.since, found.reason) == (phase, unix(since), reason)


@pytest.mark.parametrize("ended", ["Succeeded", "Failed"])
def test_pod_that_has_ended_is_left_out(ended: str) -> None:
    assert parse_pod(pod("p", NOT_READY, status={"phase": ended}), None) is None


@pytest.mark.parametrize(
    ("waiting", "last", "reason"),
    [
        ({"reason": "ContainerCreating"}, None, ""),
        ({"reason": "PodInitializing"}, None, ""),
        (
            {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "vllm"'},
            None,
            'ImagePullBackOff: Back-off pulling image "vllm"',
        ),
        (
            {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"},
            {"reason": "OOMKilled", "exitCode": 137},
            "CrashLoopBackOff: back-off 5m0s (last exit: OOMKilled, code 137)",
        ),
    ],
)
@pytest.mark.parametrize("where", ["containerStatuses", "initContainerStatuses"])
def test_container_that_does_not_start_says_why(
    where: str, waiting: dict[str, str], last: dict[str, object] | None, reason: str
) -> None:
    container = {"state": {"waiting": waiting}, "lastState": {"terminated": last} if last else {}}
    found = parsed(pod("p", SCHEDULED, NOT_READY, status={where: [{"state": {"running": {}}}, container]}))
    assert (found.phase, found.reason) == (Phase.STARTING, reason)


def test_first_ready_time_survives_a_relapse() -> None:
    relapse = condition("Ready", False, "2026-01-31T13:00:00Z")
    found = parsed(pod("p", SCHEDULED, relapse), before=pod("p", SCHEDULED, READY))
    assert found.phase is Phase.STARTING
    assert found.since == unix("2026-01-31T13:00:00Z")
    assert found.ready_at == unix(MUCH_LATER)
    assert found.reason == "was ready and is no longer"


def running(*started: str | None) -> dict[str, Any]:
    """The status of containers, each running since a time or waiting."""
    states = [{"running": {"startedAt": at}} if at else {"waiting": {"reason": "ContainerCreating"}} for at in started]
    return {"containerStatuses": [{"state": state} for state in states]}


@pytest.mark.parametrize(
    ("item", "scheduled", "runs"),
    [
        (pod("p", WAITING_FOR_A_GPU), None, None),
        (pod("p", SCHEDULED, NOT_READY), LATER, None),
        (pod("p", SCHEDULED, NOT_READY, status=running(None)), LATER, None),
        (pod("p", SCHEDULED, NOT_READY, status=running(LATER, None)), LATER, None),
        (pod("p", SCHEDULED, NOT_READY, status=running(LATER, MUCH_LATER)), LATER, MUCH_LATER),
    ],
    ids=["pending", "scheduled", "images are pulled", "one of two runs", "all run"],
)
def test_parts_of_a_start_are_told_apart(item: dict[str, Any], scheduled: str | None, runs: str | None) -> None:
    found = parsed(item)
    assert (found.scheduled_at, found.running_at) == (unix(scheduled), unix(runs))


def test_when_containers_first_ran_survives_their_restart() -> None:
    before = pod("p", SCHEDULED, NOT_READY, status=running(LATER))
    after = pod("p", SCHEDULED, NOT_READY, status=running(MUCH_LATER))
    assert parsed(after, before).running_at == unix(LATER)


def test_new_pod_of_an_old_name_was_never_ready() -> None:
    found = parsed(pod("p", SCHEDULED, NOT_READY, uid="another"), before=pod("p", SCHEDULED, READY))
    assert found.ready_at is None


@pytest.mark.parametrize(("index", "counts"), [("0", True), ("1", False), ("12", False)])
def test_only_the_leader_of_a_leader_worker_set_group_is_a_replica(index: str, counts: bool) -> None:
    labels = {"app": "llama", "leaderworkerset.sigs.k8s.io/worker-index": index}
    assert (parse_pod(pod("p", READY, labels=labels), None) is not None) is counts


def test_ports_are_found_by_name_or_number() -> None:
    ports: list[dict[str, Any]] = [{"containerPort": 8000, "name": "http"}, {"containerPort": 9000}]
    assert parsed(pod("p", READY, ports=ports)).ports == {"http": 8000, "9000": 9000}


def test_address_and_place_are_kept() -> None:
    found = parsed(pod("p", READY))
    assert (found.ip, found.host_ip, found.node) == ("10.0.0.7", "10.1.0.1", "node-0")


def test_who_made_a_pod_and_which_marks_it_carries_are_kept() -> None:
    owners = [{"kind": "Node", "name": "n"}, {"kind": "ReplicaSet", "name": "llama-5d8f", "controller": True}]
    marks = {"controller.kubernetes.io/pod-deletion-cost": "3", "karpenter.sh/do-not-disrupt": "true"}
    found = parsed(pod("p", READY, ownerReferences=owners, annotations={**marks, "note": "anything"}))
    assert (found.controller, found.marks) == ("ReplicaSet", marks)
    assert (parsed(pod("p", READY)).controller, parsed(pod("p", READY)).marks) == ("", {})


def test_pod_without_any_status_is_starting() -> None:
    item = pod("p")
    item["status"] = {}
    found = parsed(item)
    assert (found.phase, found.ip) == (Phase.STARTING, "")
