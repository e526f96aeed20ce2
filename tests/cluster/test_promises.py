"""Promises about `spec.replicas`, kept with the real KEDA and the real HPA: every count that there was is checked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from inference.simulated import TIME_BOUND
from tests.cluster.role import Role
from tests.cluster.stage import Model, Stage
from tests.cluster.workload_objects import GROUPS, group_definition, set_status
from tests.cluster.workloads import deployment

pytestmark = pytest.mark.toolchain

ONE_SLOT = replace(TIME_BOUND, max_num_seqs=1)
FOR_EVER = "24h"
ALWAYS = "00:00-00:00 UTC"


def test_the_count_arrives_exactly_or_as_the_tolerance_mode_says(stage: Stage) -> None:
    ten, twenty, up, holding, dropped = models = stage.play(
        Role(name="ten", replicas=10, users=10),
        Role(name="twenty", replicas=20, users=20),
        Role(name="round-up", replicas=20, users=20, tolerance=None, triggers=({"toleranceMode": "round-up"},)),
        Role(name="hold", replicas=20, users=20, tolerance=None, triggers=({"toleranceMode": "hold"},)),
        Role(name="dropped", replicas=20, users=20, tolerance=None),
    )
    for model in models:
        model.users += 1
    ten.goes(10, 11)
    twenty.goes(20, 21)
    up.goes(20, 23)  # the first count that is more than a tenth above 20
    stage.wait_for("an HPA that keeps 20 although 21 is wanted", lambda: dropped.values() == ["1050m"])
    told = dropped.explain()
    assert told is not None
    assert (told.replicas.desired, told.emission.arrives_at) == (21, 20)
    assert "tolerance" in told.emission.note
    assert dropped.went(20)
    assert holding.went(20)

    twenty.users = 20
    holding.users = 23
    twenty.goes(20, 21, 20)
    holding.goes(20, 23)
    assert ten.went(10, 11)
    assert up.went(20, 23)


def test_only_what_is_quiet_goes_to_zero_and_a_floor_brings_it_back(stage: Stage) -> None:
    quiet, busy, loading = stage.play(
        Role(name="quiet", replicas=1, users=1, minimum=0),
        Role(name="busy", replicas=1, users=1, minimum=0),
        Role(name="loading", replicas=1, users=0, minimum=0, startup=FOR_EVER, begins_ready=False),
    )
    quiet.users = 0
    quiet.goes(1, 0)
    assert busy.went(1)
    assert loading.went(1)

    quiet.has({"minReplicasSchedule": f"{ALWAYS} = 3"})
    busy.users = 0
    loading.make_ready(*loading.pods())
    quiet.goes(1, 0, 1, 3)  # KEDA itself takes the first step, the HPA the others
    busy.goes(1, 0)
    loading.goes(1, 0)


def test_leaving_pods_are_left_out_coming_ones_are_credited_and_triggers_keep_apart(stage: Stage) -> None:
    leaving, coming, two = stage.play(
        Role(name="leaving", replicas=4, users=4, drain=FOR_EVER),
        Role(name="coming", replicas=1, users=4, startup=FOR_EVER, profile=ONE_SLOT, begins_ready=False),
        Role(name="two", replicas=6, users=6, triggers=({"targetOngoingRequests": "2"}, {})),
    )
    coming.make_ready(*coming.pods())
    stage.cluster.kubectl("delete", "pod", leaving.pods()[0], "-n", stage.namespace, "--wait=false")
    coming.goes(1, 4)
    coming.users = 6

    def credited() -> bool:
        told = coming.explain()
        return told is not None and "credit" in {step.rule for step in told.steps}

    stage.wait_for("credit for the pods on the way", credited)
    stage.wait_for("both triggers of one ScaledObject", lambda: two.values() == ["500m", "1"])
    assert coming.went(1, 4)
    assert two.went(6)

    coming.make_ready(*coming.pods())
    leaving.users = 6  # and one request is still with the pod that leaves
    two.users = 8
    coming.goes(1, 4, 6)
    leaving.goes(4, 6)
    two.goes(6, 8)
    told = leaving.explain()
    assert told is not None
    assert told.replicas.terminating == 1


def says(model: Model, *words: str) -> bool:
    described = model.described()
    return all(word in described for word in words)


def test_triggers_change_without_a_restart_invalid_ones_are_told_and_pauses_are_kept(stage: Stage) -> None:
    changed, broken, wrong, lowered, paused = stage.play(
        Role(name="changed", replicas=4, users=4),
        Role(name="broken", replicas=4, users=4),
        Role(name="wrong", replicas=4, users=4, triggers=({"upscaleDelay": "soon"},)),
        Role(name="lowered", replicas=4, users=4),
        Role(name="paused", replicas=4, users=4),
    )
    changed.has({"targetOngoingRequests": "0.5"})
    broken.has({"targetOngoingRequests": "many"})
    lowered.annotate("autoscaling.keda.sh/paused-replicas=2")
    paused.annotate("autoscaling.keda.sh/paused=true")
    told = partial(says, broken, "the last valid ones stay in force", "targetOngoingRequests: 'many'")
    stage.wait_for("what is wrong with the changed trigger in kubectl describe", told)
    told = partial(says, wrong, "InvalidTrigger", "upscaleDelay: 'soon'")
    stage.wait_for("what is wrong with the new trigger in kubectl describe", told)
    stage.wait_for("no HPA while paused", lambda: not paused.hpa() and not lowered.hpa())
    for model in (broken, lowered, paused):
        model.users = 6
    changed.goes(4, 8)
    broken.goes(4, 6)  # by the last valid trigger
    lowered.goes(4, 2)
    assert wrong.went(4)
    assert paused.went(4)

    lowered.annotate("autoscaling.keda.sh/paused-replicas-")
    paused.annotate("autoscaling.keda.sh/paused-")
    wrong.users = 5
    wrong.has({})
    lowered.goes(4, 2, 6)
    paused.goes(4, 6)
    wrong.goes(4, 5)


def test_any_kind_with_a_scale_subresource_can_be_the_target(stage: Stage) -> None:
    stage.apply(group_definition(), deployment("group", replicas=2))
    stage.cluster.wait_for_crds("modelgroups.test.example.com")
    stateful, group = stage.play(
        Role(name="stateful", kind="StatefulSet", replicas=2, users=2),
        Role(name="group", kind="ModelGroup", replicas=2, users=2),
    )
    status = {"replicas": 2, "selector": "app=group"}
    set_status(stage.cluster, f"{GROUPS.format(stage.namespace)}/group", status)
    stateful.users = group.users = 4
    stateful.goes(2, 4)
    group.goes(2, 4)
