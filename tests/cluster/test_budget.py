"""Models that share a budget of GPUs, with the real KEDA and HPA between the scaler and their counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cluster.keda import KedaCluster
from tests.cluster.role import POLICIES, Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Stage

pytestmark = pytest.mark.toolchain


def test_the_lower_priority_gives_way_and_takes_again_what_is_left(
    keda_cluster: KedaCluster, keda_namespace: str, tmp_path: Path
) -> None:
    priorities = {f"{keda_namespace}/chat": 1, f"{keda_namespace}/*": 0}
    file = tmp_path / "budgets.yaml"
    file.write_text(yaml.safe_dump({"pool": {"gpus": 6, "priorities": priorities}}))
    with (
        ScalerProcess(keda_cluster, POLICIES, f"--budgets={file}") as scaler,
        Stage(keda_cluster, keda_namespace, scaler) as stage,
    ):
        chat, batch = stage.play(Role(name="chat", replicas=1, users=1), Role(name="batch", replicas=5, users=5))
        chat.users = 4
        chat.goes(1, 4)
        batch.goes(5, 2)
        told = batch.explain()
        assert told is not None
        assert "budget pool of 6 GPUs at priority 0" in told.story
        chat.users = 1
        chat.goes(1, 4, 1)
        batch.goes(5, 2, 5)
