"""Two replicas of the scaler that the chart installs: whichever ends, the other goes on where it was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import grpc
import httpx
import pytest
import yaml

from scaler.serving.protocol import insight_pb2 as pb
from tests.cluster.asking import Asking
from tests.cluster.keda import KedaCluster
from tests.cluster.local_pod import LocalPod
from tests.cluster.programs import Program
from tests.cluster.release import Release
from tests.cluster.role import POLICIES, Role
from tests.cluster.service import Service
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

_END_S = 30.0
_HANG_S = 10.0


@dataclass(frozen=True)
class Pair:
    """Two replicas, the first of which leads, behind one Service."""

    leader: LocalPod
    standby: LocalPod
    service: Service
    stage: Stage


@pytest.fixture
def pair(keda_cluster: KedaCluster, keda_namespace: str) -> Iterator[Pair]:
    values = {
        "replicaCount": 2,
        "leaderElection": {"enabled": True},
        "watchNamespaces": [keda_namespace],
        "policies": {name: dict(policy) for name, policy in POLICIES.items()},
    }
    with Release(keda_cluster, keda_namespace) as release:
        release.install(yaml.safe_dump(values))
        leader = release.run(0)
        keda_cluster.wait_for("a leader", leader.is_ready)
        standby = release.run(1)
        with (
            Service(leader, standby) as service,
            Asking(service.address) as asking,
            Stage(keda_cluster, keda_namespace, asking) as stage,
        ):
            yield Pair(leader, standby, service, stage)


def end(pod: LocalPod, how: signal.Signals) -> None:
    assert pod.program.pid is not None
    os.kill(pod.program.pid, how)
    pod.program.finish(time.monotonic() + _END_S)


@contextmanager
def hanging(program: Program) -> Iterator[None]:
    """Within the block the program does nothing, but keeps its connections."""
    assert program.pid is not None
    os.kill(program.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(program.pid, signal.SIGCONT)


def decided(told: pb.Explanation | None, desired: int) -> pb.Explanation | None:
    return told if told is not None and told.replicas.desired == desired else None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_the_standby_goes_on_where_the_leader_ended(pair: Pair, how: signal.Signals) -> None:
    stage = pair.stage
    (model,) = stage.play(Role(name="chat", replicas=4, users=4, polling_s=3600))
    (trigger,) = model.role.scaled_object(pair.service.address)["spec"]["triggers"]
    target = stage.namespace, model.name
    model.users = 6
    model.goes(4, 6)
    with Asking(pair.leader.grpc) as leader, Asking(pair.standby.grpc) as standby, ThreadPoolExecutor() as pool:
        assert (pair.leader.is_ready(), pair.standby.is_ready()) == (True, False)
        assert (leader.serves(), standby.serves()) == (True, False)
        warm = stage.wait_for("a standby that has decided", lambda: decided(standby.explain(*target), 6))
        value = leader.value(*target, trigger["metadata"])
        said: list[bool] = []
        stream = pool.submit(lambda: said.extend(leader.activity(*target, trigger["metadata"])))
        stage.wait_for("an open stream", lambda: said)

        end(pair.leader, how)
        stage.wait_for("a new leader", lambda: pair.service.ready() is pair.standby and standby.serves())
        led_from = time.time()
        assert standby.value(*target, trigger["metadata"]) == value
        told = standby.explain(*target)
        assert told is not None
        assert (told.last_change, told.last_change_time) == (warm.last_change, warm.last_change_time)
        if how is signal.SIGTERM:
            stream.result(_END_S)  # it ended with OK
        else:
            assert isinstance(stream.exception(_END_S), grpc.RpcError)

    stage.wait_for("KEDA at the new leader's stream", lambda: model.last_active() > led_from)
    assert model.went(4, 6)
    model.users = 8
    model.goes(4, 6, 8)


def test_an_api_server_that_is_away_for_longer_than_the_lease_ends_the_lead_and_all_is_right_when_it_is_back(
    pair: Pair,
) -> None:
    stage = pair.stage
    more, fewer = models = stage.play(
        *(Role(name=name, replicas=4, users=4, minimum=0, cooldown_s=300) for name in ("more", "fewer"))
    )
    for model in models:
        stage.wait_for(f"an HPA that has looked at {model.name}", partial(is_right, model))
    api_server = stage.cluster.programs["kube-apiserver"]
    api_server.stop()
    more.users, fewer.users = 6, 2
    stage.wait_for("a leader that has stepped down", lambda: pair.service.ready() is None)

    api_server.start()
    stage.wait_for("the API server", stage.cluster.is_ready)
    stage.wait_for("a leader", pair.service.ready)
    more.goes(4, 6)
    fewer.goes(4, 2)


def test_a_restart_of_keda_keeps_the_count_and_it_asks_again(stage: Stage) -> None:
    more, fewer = models = stage.play(Role(name="more", replicas=4, users=4), Role(name="fewer", replicas=4, users=4))
    for model in models:
        stage.wait_for(f"an HPA that has looked at {model.name}", partial(is_right, model))
    operator = stage.cluster.programs["keda-operator"]
    operator.stop()
    try:
        more.users, fewer.users = 6, 2
        for model in models:
            stage.wait_for(f"a frozen HPA of {model.name}", model.frozen)
            assert model.went(4)
    finally:
        operator.start()
    more.goes(4, 6)
    fewer.goes(4, 2)


def test_a_store_that_hangs_keeps_the_count_until_it_goes_on(stage: Stage) -> None:
    more, fewer = models = stage.play(Role(name="more", replicas=4, users=4), Role(name="fewer", replicas=4, users=4))
    for model in models:
        stage.wait_for(f"an HPA that has looked at {model.name}", partial(is_right, model))
    with hanging(stage.cluster.programs["etcd"]):
        more.users, fewer.users = 6, 2
        until = time.monotonic() + _HANG_S
        while (left := until - time.monotonic()) > 0:
            assert not writes(stage, within_s=left)
    for model in models:
        assert model.went(4)
    more.goes(4, 6)
    fewer.goes(4, 2)


def writes(stage: Stage, within_s: float) -> bool:
    """Whether the API server writes: without its store it does not answer, or says that it gave up."""
    path = f"/api/v1/namespaces/{stage.namespace}/configmaps"
    try:
        return stage.cluster.api.post(path, json={"metadata": {"name": "late"}}, timeout=within_s).status_code < 500
    except httpx.TimeoutException:
        return False


def is_right(model: Model) -> bool:
    """Whether the HPA was told what the count is."""
    return model.values() == ["1"]
