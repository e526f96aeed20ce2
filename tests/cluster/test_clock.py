"""A wall clock that jumps, as when a node's time is set right: no decision hangs on it but those by the time of day."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.keda import KedaCluster
from tests.cluster.role import POLICIES, Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

HOUR_S = 3600.0


@pytest.fixture(scope="module")
def offset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that says by how many seconds the scaler's clock is off."""
    file = tmp_path_factory.mktemp("clock") / "offset"
    file.write_text("0")
    return file


@pytest.fixture(scope="module")
def scaler_process(keda_cluster: KedaCluster, offset: Path) -> Iterator[ScalerProcess]:
    """A scaler with that clock."""
    command = (sys.executable, "-m", "tests.cluster.odd_clock", offset)
    process = ScalerProcess(keda_cluster, POLICIES, command=command)
    yield process
    process.close()


def decides_at(model: Model, offset_s: float) -> bool:
    """Whether its latest decision bears a time that is off by so much."""
    told = model.explain()
    return told is not None and abs(told.time - time.time() - offset_s) < HOUR_S / 2


def test_a_clock_that_jumps_ahead_and_back_moves_no_count_and_stops_no_decision(stage: Stage, offset: Path) -> None:
    more, steady = stage.play(Role(name="more", replicas=4, users=4), Role(name="steady", replicas=4, users=4))
    for jump_s, users in ((HOUR_S, 6), (-HOUR_S, 8)):
        offset.write_text(str(jump_s))
        for model in (more, steady):
            stage.wait_for("a decision by the new time", partial(decides_at, model, jump_s))
        more.users = users
        more.goes(*range(4, users + 1, 2))
    assert steady.went(4)
