"""The image, built from the Dockerfile and run as Kubernetes runs it: no root, nothing to write to, no rights."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import grpc
import pytest
from docker.types import Ulimit
from grpc_health.v1 import health_pb2, health_pb2_grpc
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from tests.cluster import podman
from tests.cluster.programs import Ports, wait_for

pytestmark = pytest.mark.container

TAG = "localhost/vllm-scaler-test:latest"


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """The image's name, while podman's Docker API is there for testcontainers."""
    podman.build(Path(__file__).parents[2], TAG)
    with pytest.MonkeyPatch.context() as patch, podman.docker_api() as docker_host:
        patch.setenv("DOCKER_HOST", docker_host)
        patch.setattr(testcontainers_config, "ryuk_disabled", True)  # an image of its own, to be fetched
        yield TAG
    podman.podman("image", "rm", "--force", TAG)


def container(image: str, *words: str, entrypoint: str | None = None) -> DockerContainer:
    limits = [Ulimit(name=name, soft=podman.LIMITS, hard=podman.LIMITS) for name in ("nofile", "nproc")]
    return (
        DockerContainer(image)
        .with_command(list(words))
        .with_kwargs(entrypoint=entrypoint, network_mode="host", read_only=True, cap_drop=["ALL"], ulimits=limits)
    )


def test_the_server_answers_the_health_check_and_stops_when_told(image: str) -> None:
    ports = Ports()
    grpc_port, http_port = ports.reserve("grpc"), ports.reserve("http")
    words = ("--listen", f"127.0.0.1:{grpc_port}", "--http-listen", f"127.0.0.1:{http_port}")
    with container(image, "serve", *words, "--allow-endpoints", "127.0.0.0/8") as server:
        with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            check = health_pb2_grpc.HealthStub(channel).Check
            request, serving = health_pb2.HealthCheckRequest(), health_pb2.HealthCheckResponse.SERVING
            wait_for(
                "a healthy server",
                lambda: check(request, timeout=60, wait_for_ready=True).status == serving,
                timeout_s=60,
            )
        running = server.get_wrapped_container()
        running.stop(timeout=30)
        assert running.wait(timeout=30)["StatusCode"] == 0


def test_the_command_line_is_the_packages(image: str) -> None:
    with container(image, "--version") as once:
        running = once.get_wrapped_container()
        assert running.wait(timeout=60)["StatusCode"] == 0
        assert running.logs().decode().split() == ["vllm-scaler", metadata.version("vllm-scaler")]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import importlib.util as u; print(u.find_spec('pip'))", "None"),
        ("import os; print(os.getuid(), os.getgid())", "65532 65532"),
    ],
    ids=["no installer is left", "nobody is root"],
)
def test_in_the_image(image: str, program: str, said: str) -> None:
    with container(image, "-c", program, entrypoint="python") as once:
        running = once.get_wrapped_container()
        assert running.wait(timeout=60)["StatusCode"] == 0
        assert running.logs().decode().strip() == said
