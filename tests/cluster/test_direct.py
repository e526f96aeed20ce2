"""Direct delivery with the real HPA: a burst's count is there before the HPA looks, and the HPA then agrees."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cluster.role import Role
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

BURSTS = ((4, 9), (8, 32), (16, 64))
"""Users before and after."""
DIRECT = {"burstThreshold": "0.5", "delivery": "direct"}
HPA = "kube-controller-manager"


def test_a_burst_is_delivered_at_once_and_the_hpa_agrees_when_it_looks(stage: Stage) -> None:
    roles = [
        Role(name=f"to-{after}", replicas=before, users=before, tolerance=None, triggers=(DIRECT,))
        for before, after in BURSTS
    ]
    models = stage.play(*roles)
    for model in models:
        stage.wait_for(f"an HPA that has looked at {model.name}", partial(agrees, model, model.role.replicas))

    for model, (_, after) in zip(models, BURSTS, strict=True):
        model.users = after
    for model, (before, after) in zip(models, BURSTS, strict=True):
        stage.wait_for(f"{after} replicas of {model.name}", partial(has_risen, model, before, after))
    # The HPA may look in the very moment in which a burst is seen, but not for all of them.
    assert sum(HPA not in model.scaled_by() for model in models) > 1

    for model, (before, after) in zip(models, BURSTS, strict=True):
        stage.wait_for(f"an HPA that agrees with {after}", partial(agrees, model, after))
        assert has_risen(model, before, after)


def has_risen(model: Model, before: int, after: int) -> bool:
    """In one step, or two where a burst came while pods were being read; and never back."""
    counts = list(model.counts)
    assert counts == sorted(counts)
    assert len(counts) <= 3
    return (counts[0], counts[-1]) == (before, after)


def agrees(model: Model, replicas: int) -> bool:
    """Whether the HPA has looked at so many replicas and wants as many."""
    status = model.hpa()
    return model.values() == ["1"] and status.get("currentReplicas") == status.get("desiredReplicas") == replicas
