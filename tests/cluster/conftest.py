"""A real API server for the tests of a session; a failed test shows the logs of its programs."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.keda import KedaCluster
from tests.cluster.role import POLICIES
from tests.cluster.scaler_process import ScalerProcess
from tests.cluster.stage import Stage


@pytest.fixture(scope="session")
def api_server() -> Iterator[ControlPlane]:
    """An API server that keeps objects and acts on none; it is shared, so use a namespace of your own."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def namespace(api_server: ControlPlane) -> str:
    """A namespace of the shared API server for one test."""
    return api_server.create_namespace()


@pytest.fixture(scope="session")
def keda_cluster() -> Iterator[KedaCluster]:
    """A cluster with KEDA; it is shared, so use a namespace of your own."""
    with KedaCluster() as cluster:
        yield cluster


@pytest.fixture
def keda_namespace(keda_cluster: KedaCluster) -> Iterator[str]:
    """A namespace of the shared cluster for one test; what the test made in it goes when the test ends."""
    name = keda_cluster.create_namespace()
    yield name
    keda_cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def scaler_process(keda_cluster: KedaCluster) -> Iterator[ScalerProcess]:
    """A scaler for the shared cluster that the tests of a module share."""
    process = ScalerProcess(keda_cluster, POLICIES)
    yield process
    process.close()


@pytest.fixture
def stage(keda_cluster: KedaCluster, keda_namespace: str, scaler_process: ScalerProcess) -> Iterator[Stage]:
    """An empty stage for one test."""
    with Stage(keda_cluster, keda_namespace, scaler_process) as empty:
        yield empty


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the tails of the logs of every control plane it used, and the files are kept."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for name, value in item.funcargs.items():
            if isinstance(value, ControlPlane):
                value.keep_logs = True
                report.sections.append((f"logs of {name}", value.logs()))
    return report
