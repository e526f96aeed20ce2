"""A network that swallows what the API server sends to the scaler: its watches stand, and say nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from scaler.serving.protocol import insight_pb2 as pb
from tests.cluster.keda import KedaCluster
from tests.cluster.proxy import Proxy
from tests.cluster.role import POLICIES, Role
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain


@dataclass(frozen=True)
class Afar:
    """A stage whose scaler reaches the API server through a proxy; KEDA reaches it directly."""

    stage: Stage
    proxy: Proxy


@pytest.fixture
def afar(keda_cluster: KedaCluster, keda_namespace: str, tmp_path: Path) -> Iterator[Afar]:
    proxy = Proxy(keda_cluster, tmp_path / "kubeconfig")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(proxy):
        scaler = ScalerProcess(keda_cluster, POLICIES, kubeconfig=proxy.kubeconfig)
        try:
            with Stage(keda_cluster, keda_namespace, scaler) as stage:
                yield Afar(stage, proxy)
        finally:
            scaler.close()


def test_a_watch_that_silently_stops_is_noticed_and_the_count_stays_until_the_truth_is_seen_again(afar: Afar) -> None:
    stage = afar.stage
    more, fewer = models = stage.play(
        *(Role(name=name, replicas=4, users=4, minimum=0, cooldown_s=300) for name in ("more", "fewer"))
    )
    for model in models:
        stage.wait_for(f"an HPA that has looked at {model.name}", lambda model=model: model.values() == ["1"])
    afar.proxy.swallows = True
    for model in models:
        stage.wait_for(f"a scaler that knows too little of {model.name}", lambda model=model: is_stale(model))
        stage.wait_for(f"a frozen HPA of {model.name}", model.frozen)
    more.users, fewer.users = 6, 2
    afar.proxy.swallows = False
    more.goes(4, 6)
    fewer.goes(4, 2)


def is_stale(model: Model) -> bool:
    told = model.explain()
    return told is not None and told.state == pb.STALE and "cluster was last seen" in told.reason
