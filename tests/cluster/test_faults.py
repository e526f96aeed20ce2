"""Faults on a cluster with the real KEDA and HPA: `spec.replicas` never falls from ignorance, and is right afterwards.

Every model may go to zero, so that whatever was taken for quiet would show. But not before KEDA's usual cool-down: when
the HPA's question and KEDA's own fail at once, KEDA 2.21 may take its scalers, which the one has closed, for inactive
ones without an error. It then goes to zero once the cool-down has passed, whatever the scaler says.
"""

from __future__ import annotations

from functools import partial

import pytest

from inference.simulated import Fault
from scaler.serving.protocol import insight_pb2 as pb
from tests.cluster.role import Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

MAY_GO_TO_ZERO = partial(Role, replicas=4, users=4, minimum=0, cooldown_s=300)


def play(stage: Stage, *names: str) -> list[Model]:
    """Models with four users on four replicas, and HPAs that have found that right."""
    models = stage.play(*(MAY_GO_TO_ZERO(name=name) for name in names))
    for model in models:
        stage.wait_for(f"an HPA that has looked at {model.name}", partial(is_right, model))
    return models


def is_right(model: Model) -> bool:
    return model.values() == ["1"]


def is_stale(model: Model) -> bool:
    """Whether the scaler refuses to answer, since what it knows is too old."""
    told = model.explain()
    return told is not None and told.state == pb.STALE


def is_held_for_unknown_pods(model: Model) -> bool:
    told = model.explain()
    return told is not None and told.load.unknown_pods > 0 and "hold" in {step.rule for step in told.steps}


def test_pods_that_cannot_be_read_are_not_idle(stage: Stage) -> None:
    faults = (Fault.HUNG, Fault.GARBAGE, Fault.EMPTY, Fault.RESET)
    half, *blind = models = play(stage, "half-hung", *(f"all-{fault}" for fault in faults))
    half.fleet.fail(Fault.HUNG, *half.pods()[:2])
    for model, fault in zip(blind, faults, strict=True):
        model.fleet.fail(fault)
    half.users = 0
    stage.wait_for("a hold", partial(is_held_for_unknown_pods, half))
    for model in blind:
        stage.wait_for(f"a frozen HPA of {model.name}", model.frozen)
    for model in models:
        assert model.went(4)

    for model in models:
        model.fleet.fail(None)
        model.users = 5
    for model in models:
        model.goes(4, 5)


def test_a_killed_scaler_freezes_the_count_and_a_new_one_goes_on(stage: Stage, scaler_process: ScalerProcess) -> None:
    more, fewer = models = play(stage, "more", "fewer")
    scaler_process.kill()
    more.users, fewer.users = 6, 2
    for model in models:
        stage.wait_for(f"a frozen HPA of {model.name}", model.frozen)
        assert model.went(4)

    scaler_process.start()
    more.goes(4, 6)
    fewer.goes(4, 2)


def test_without_an_api_server_nothing_is_answered_from_memory_and_all_is_right_when_it_is_back(stage: Stage) -> None:
    more, fewer = models = play(stage, "more", "fewer")
    api_server = stage.cluster.programs["kube-apiserver"]
    api_server.stop()
    more.users, fewer.users = 6, 2
    for model in models:
        stage.wait_for(f"a scaler that knows too little of {model.name}", partial(is_stale, model))

    api_server.start()
    stage.wait_for("the API server", stage.cluster.is_ready)
    more.goes(4, 6)
    fewer.goes(4, 2)
