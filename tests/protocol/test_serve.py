"""`vllm-scaler serve` as a process: its options, a pod named by address, and the end by SIGTERM."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.protocol.process import ANYWHERE, served, start
from tests.protocol.world import PATIENCE_S, POLICY, Keda, until


@dataclass
class VllmPod:
    """A pod's metrics page, over HTTP."""

    waiting: int = 0
    running: int = 0
    port: int = 0

    async def page(self, _request: web.Request) -> web.Response:
        """The page of an engine with these queues."""
        gauges = {"num_requests_waiting": self.waiting, "num_requests_running": self.running, "kv_cache_usage_perc": 0}
        lines = []
        for name, value in gauges.items():
            lines.append(f"# TYPE vllm:{name} gauge")
            lines.append(f'vllm:{name}{{engine="0",model_name="tiny"}} {value}')
        return web.Response(text="\n".join(lines) + "\n")


@pytest.fixture
async def pod() -> AsyncIterator[VllmPod]:
    pod = VllmPod()
    app = web.Application()
    app.add_routes([web.get("/metrics", pod.page), web.get("/metrics/", pod.page)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    pod.port = runner.addresses[0][1]
    yield pod
    await runner.cleanup()


async def test_a_pod_named_by_address_is_read_and_its_queue_becomes_a_count(pod: VllmPod) -> None:
    pod.waiting, pod.running = 30, 5
    metadata = {**POLICY, "endpoints": f"127.0.0.1:{pod.port}", "minReplicas": "0", "maxReplicas": "9"}
    async with (
        served("--allow-endpoints", "127.0.0.0/8") as process,
        grpc.aio.insecure_channel(process.grpc) as channel,
    ):
        keda = Keda(channel, metadata)
        await until(lambda: _is(keda, 4), "4 replicas for 35 requests")
        pod.waiting, pod.running = 0, 0
        await until(lambda: _is(keda, 0), "none for none")


async def test_endpoints_outside_what_is_allowed_are_refused(pod: VllmPod) -> None:
    async with (
        served("--allow-endpoints", "10.1.0.0/16, 10.2.0.0/16") as process,
        grpc.aio.insecure_channel(process.grpc) as channel,
    ):
        keda = Keda(channel, {**POLICY, "endpoints": f"127.0.0.1:{pod.port}"})
        code, text = await keda.refusal(Keda.metric)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "endpoints" in text
        assert "127.0.0.1" in text


async def test_a_cluster_that_does_not_answer_is_told_soon_with_its_address_and_the_scaler_is_not_ready(
    tmp_path: Path,
) -> None:
    server = await asyncio.start_server(_say_nothing, "127.0.0.1", 0)
    address = "http://{}:{}".format(*server.sockets[0].getsockname())
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(_config(address)))
    async with (
        server,
        served("--kubeconfig", str(kubeconfig)) as process,
        aiohttp.ClientSession(f"http://{process.http}") as http,
    ):
        said = await process.says("the cluster does not answer")
        assert said["server"] == address
        assert "--kubeconfig" in said["remedy"]
        async with http.get("/readyz") as ready, http.get("/healthz") as alive:
            assert (ready.status, alive.status) == (503, 200)
            assert address in await ready.text()


async def test_sigterm_ends_streams_with_ok_and_the_process_with_zero(pod: VllmPod) -> None:
    pod.running = 1
    metadata = {**POLICY, "endpoints": f"127.0.0.1:{pod.port}"}
    async with (
        served("--allow-endpoints", "127.0.0.0/8") as process,
        grpc.aio.insecure_channel(process.grpc) as channel,
    ):
        keda = Keda(channel, metadata)
        streams = [keda.stub.StreamIsActive(keda.ref), keda.stub.StreamMetricSpec(keda.ref)]
        for stream in streams:
            await asyncio.wait_for(stream.read(), PATIENCE_S)
        process.process.send_signal(signal.SIGTERM)
        for stream in streams:
            async with asyncio.timeout(PATIENCE_S):
                while await stream.read() is not grpc.aio.EOF:
                    pass
            assert await stream.code() is grpc.StatusCode.OK
        assert await process.end() == 0


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (("--listen", "9090"), 2, "no HOST:PORT"),
        (("--allow-endpoints", "10.0.0.0/8,cluster"), 2, "'cluster'"),
        (("--tls-cert", __file__), 2, "--tls-cert and --tls-key go together"),
        (("--tls-cert", __file__, "--tls-key", __file__), 1, "no PEM certificate"),
        (("--client-ca", __file__), 2, "--client-ca needs --tls-cert"),
        (("--dcgm-url", "dcgm:9400"), 2, "http://{host_ip}:9400/metrics"),
        (("--prometheus", "prometheus:9090"), 2, "https://prometheus.monitoring:9090"),
        (("--ca-file", __file__), 2, "is no PEM file of certificates"),
        (("--bearer-token-file", "/dev/null"), 2, "/dev/null is empty"),
        (("--page-token-file", "/dev/null"), 2, "/dev/null is empty"),
        (("--kubeconfig", __file__), 1, "cannot be used"),
        (("--leader-elect",), 1, "no cluster"),
        (("--policies", __file__), 1, "no YAML"),
        (("--record", "/nonexistent/file"), 1, "--record: /nonexistent/file cannot be written: No such file"),
        (("--record", "/dev/full"), 1, "--record: /dev/full cannot be written: No space left"),
        ((), 1, "--allow-endpoints"),
    ],
)
async def test_what_cannot_be_served_is_one_clear_error(options: tuple[str, ...], status: int, told: str) -> None:
    network = (
        () if options in ((), ("--allow-endpoints", "10.0.0.0/8,cluster")) else ("--allow-endpoints", "10.0.0.0/8")
    )
    process = await start(*ANYWHERE, *network, *options)
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == status, said.decode()
    assert told in " ".join(said.decode().replace("│", " ").split())
    assert b"Traceback" not in said


async def test_a_port_in_use_is_told_in_one_line_of_our_own(pod: VllmPod) -> None:
    process = await start(*ANYWHERE, "--allow-endpoints", "10.0.0.0/8", "--listen", f"127.0.0.1:{pod.port}")
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    (line,) = [line for line in said.decode().splitlines() if not line.startswith("{")]
    assert process.returncode == 1
    assert f"cannot listen on 127.0.0.1:{pod.port} for gRPC: the port is in use" in line


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take a connection and whatever comes by it, as a server does that hangs."""
    await reader.read()
    writer.close()


def _config(server: str) -> dict[str, object]:
    """A kubeconfig, as JSON, which is YAML too."""
    return {
        "clusters": [{"name": "far", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [{"name": "far", "context": {"cluster": "far", "user": "me"}}],
        "current-context": "far",
    }


async def _is(keda: Keda, replicas: int) -> bool:
    return await keda.value() == replicas
