"""Faults on a cluster with the real KEDA and HPA: `spec.replicas` never falls from ignorance, and is right afterwards.

Most models may go to zero, so that whatever was taken for quiet would show. But where KEDA gets no answer, not before
its usual cool-down: when the HPA's question and KEDA's own fail at once, KEDA 2.21 may take its scalers, which the one
of them has closed, for inactive ones without an error. It then goes to zero once the cool-down has passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from inference.simulated import Fault
from inference.simulated.faults import OVERSIZED_BYTES
from scaler.serving.protocol import insight_pb2 as pb
from tests.cluster.role import Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain


def play(stage: Stage, *names: str, minimum: int = 0, cooldown_s: int = 300) -> list[Model]:
    """Models with four users on four replicas, and HPAs that have found that right."""
    models = stage.play(
        *(Role(name=name, replicas=4, users=4, minimum=minimum, cooldown_s=cooldown_s) for name in names)
    )
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
    (half,) = play(stage, "half-hung")
    (hung,) = play(stage, "all-hung", minimum=1)
    half.fleet.fail(Fault.HUNG, *half.pods()[:2])
    hung.fleet.fail(Fault.HUNG)
    half.users = 0
    stage.wait_for("a hold", partial(is_held_for_unknown_pods, half))
    stage.wait_for("a frozen HPA", hung.frozen)
    recover(half, hung)


def test_where_keda_may_go_to_zero_it_is_never_refused_an_answer_for_pods_that_cannot_be_read(stage: Stage) -> None:
    faults = (Fault.HUNG, Fault.GARBAGE, Fault.EMPTY, Fault.RESET)
    models = play(stage, *(f"all-{fault}" for fault in faults), cooldown_s=5)
    for model, fault in zip(models, faults, strict=True):
        model.fleet.fail(fault)
    for model in models:
        stage.wait_for(f"a scaler that knows too little of {model.name}", partial(is_stale, model))
    with questions(*models):
        unknown_since = time.time()
        for model in models:
            stage.wait_for(f"three cool-downs of {model.name}", partial(was_active_at, model, unknown_since + 15))
    recover(*models)


def test_pages_of_22_mb_and_then_none_that_can_be_read_never_let_a_fleet_grow_or_shrink(
    stage: Stage, scaler_process: ScalerProcess
) -> None:
    busy, idle = models = stage.play(Role(name="busy", replicas=2, users=2), Role(name="idle", replicas=1, users=0))
    for model in models:
        stage.wait_for(f"an HPA that has looked at {model.name}", partial(is_right, model))
        model.fleet.fail(Fault.OVERSIZED)
    for model in models:
        read = partial(scaler_process.page_bytes, stage.namespace, model.name)
        stage.wait_for(f"large pages of {model.name} that are read", lambda read=read: read() > 5 * OVERSIZED_BYTES)
        model.fleet.fail(Fault.GARBAGE)
    for model in models:
        stage.wait_for(f"a frozen HPA of {model.name}", model.frozen)
    assert busy.went(2)
    assert idle.went(1)
    for model in models:
        model.fleet.fail(None)
        model.users += 1
    busy.goes(2, 3)
    idle.users = 2
    idle.goes(1, 2)


def recover(*models: Model) -> None:
    """The count never moved; heal all pods, and it does."""
    for model in models:
        assert model.went(4)
        model.fleet.fail(None)
        model.users = 5
    for model in models:
        model.goes(4, 5)


def was_active_at(model: Model, unix_time: float) -> bool:
    """Whether KEDA has heard of activity so late, and the count has stayed meanwhile."""
    return model.went(4) and model.last_active() >= unix_time


@contextmanager
def questions(*models: Model) -> Iterator[None]:
    """Within the block KEDA is asked for the models' metrics as the HPA asks, but all the time.

    So each of its own questions, one a second, meets one of these.
    """
    over = threading.Event()

    def ask(model: Model) -> None:
        while not over.is_set():
            model.ask_as_the_hpa_does()

    with ThreadPoolExecutor(len(models)) as pool:
        asking = [pool.submit(ask, model) for model in models]
        try:
            yield
        finally:
            over.set()
    for each in asking:
        each.result()


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


def test_a_keda_that_does_not_ask_is_spoken_of_until_it_does(stage: Stage) -> None:
    plain: dict[str, str] = {}
    (model,) = stage.play(Role(name="tls-on-one-side", replicas=2, users=2, triggers=({"enableTLS": "true"},)))
    model.users = 3
    told = stage.wait_for("a warning", lambda: spoken_of(model))
    assert "TLS" in told
    stage.wait_for("an Event", lambda: "KEDA has never asked for this trigger" in model.described())
    assert model.went(2)
    model.has(plain)
    model.goes(2, 3)
    stage.wait_for("an end of the warning", lambda: spoken_of(model) is None)


def spoken_of(model: Model) -> str | None:
    """What the scaler says of a KEDA that does not ask."""
    told = model.explain()
    return next((warning for warning in told.warnings if warning.startswith("KEDA ")), None) if told else None
