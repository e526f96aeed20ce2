"""The oldest KEDA and Kubernetes that are supported: the same promises, and what the two lack is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.cluster.keda import KedaCluster
from tests.cluster.role import Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

ONLY_AT_FIRST = 3600
"""KEDA's polling interval where it is to hear of activity by the stream alone."""


@pytest.fixture(scope="module")
def keda_cluster() -> Iterator[KedaCluster]:
    """A cluster of the oldest parts instead of the newest, for this file's tests."""
    with KedaCluster(kubernetes="kubernetes-1.34", keda="keda-2.18") as cluster:
        yield cluster


def in_a_minute(replicas: int) -> str:
    """A schedule's window of half an hour that begins within two minutes, but not at once."""
    start = datetime.now(UTC) + timedelta(seconds=100)
    return f"{start:%H:%M}-{start + timedelta(minutes=30):%H:%M} UTC = {replicas}"


def test_the_count_follows_the_users_up_and_down_and_to_zero_and_a_push_brings_it_back(stage: Stage) -> None:
    pushed, chat, quiet = stage.play(
        Role(
            name="pushed",
            replicas=0,
            users=0,
            minimum=0,
            polling_s=ONLY_AT_FIRST,
            triggers=({"minReplicasSchedule": in_a_minute(3)},),
        ),
        Role(name="chat", replicas=1, users=1),
        Role(name="quiet", replicas=3, users=3, minimum=0),
    )
    chat.users = 3
    quiet.users = 0
    chat.goes(1, 3)
    chat.users = 1
    chat.goes(1, 3, 1)
    quiet.goes(3, 0)
    pushed.goes(0, 1, 3)  # KEDA itself takes the first step, the HPA the others


def test_a_dropped_tolerance_is_told_and_costs_no_more_than_the_dead_band(stage: Stage) -> None:
    exact, up, least, burst = models = stage.play(
        Role(name="exact", replicas=20, users=20),
        Role(name="round-up", replicas=20, users=20, triggers=({"toleranceMode": "round-up"},)),
        Role(name="least", replicas=10, users=10, minimum=9),
        Role(name="burst", replicas=20, users=20, triggers=({"burstThreshold": "0.01", "delivery": "direct"},)),
    )
    for model in models:
        stage.wait_for(f"the dropped tolerance of {model.name} in kubectl describe", partial(tells, model))
    exact.users = up.users = 21
    least.users = 9
    burst.users = 22
    up.goes(20, 23)  # the first count that is more than a tenth above 20
    least.goes(10, 9)  # at a limit what is more than a tenth beyond it arrives there
    stage.wait_for("22 replicas, which no HPA would bring", lambda: burst.counts[-1] == 22)
    assert burst.counts == sorted(burst.counts)
    stage.wait_for("an HPA that keeps 20 although 21 is wanted", lambda: exact.values() == ["1050m"])
    assert exact.went(20)
    told = exact.explain()
    assert told is not None
    assert (told.replicas.desired, told.emission.arrives_at) == (21, 20)
    assert "toleranceMode: round-up" in told.emission.note

    exact.users = 23
    exact.goes(20, 23)


def tells(model: Model) -> bool:
    """Whether the scaler says of both directions that the HPA has no tolerance: to who asks it, and in an Event."""
    told = model.explain()
    dropped = [line for line in told.warnings if "the API server dropped it" in line] if told else []
    return len(dropped) == 2 and "the API server dropped it" in model.described()


def test_an_invalid_trigger_freezes_the_count_until_it_is_put_right(stage: Stage) -> None:
    (wrong,) = stage.play(Role(name="wrong", replicas=4, users=4, triggers=({"upscaleDelay": "soon"},)))
    stage.wait_for("an HPA that is refused its metric", wrong.frozen)
    assert "upscaleDelay: 'soon'" in wrong.described()
    wrong.users = 5
    assert wrong.went(4)
    wrong.has({})
    wrong.goes(4, 5)


def test_an_hpa_that_was_made_without_the_scaler_is_told_and_put_right_by_a_poll_or_by_hand(
    stage: Stage, scaler_process: ScalerProcess
) -> None:
    scaler_process.kill()
    polled, left = models = stage.play(
        Role(name="polled", replicas=2, users=2),
        Role(name="left", replicas=2, users=2, polling_s=ONLY_AT_FIRST),
    )
    for model in models:
        stage.wait_for(f"an HPA of {model.name} that scales by CPU", partial(scales_by_cpu, model))
    scaler_process.start()
    stage.wait_for("what is wrong in kubectl describe", lambda: "asks for no external metric" in left.described())
    polled.users = left.users = 4
    polled.goes(2, 4)
    assert left.went(2)
    stage.cluster.kubectl("delete", "hpa", "keda-hpa-left", "-n", stage.namespace)
    left.goes(2, 4)


def scales_by_cpu(model: Model) -> bool:
    """Whether its HPA looks for the pods' CPU, which nobody measures here."""
    return "FailedGetResourceMetric" in {condition["reason"] for condition in model.hpa().get("conditions", ())}
