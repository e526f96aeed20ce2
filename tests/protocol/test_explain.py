"""`vllm-scaler explain` and `vllm-scaler targets` against a running scaler."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Self

import grpc
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from scaler.cli import client
from scaler.cli.explain import explain
from scaler.cli.targets import targets
from scaler.serving.host import Host
from scaler.serving.tls import TlsFiles
from scaler.targets import Clock, Targets, World
from tests.cluster.certificates import Authority
from tests.protocol.world import Fleet, Keda, hosted, until

app = typer.Typer()
app.command()(explain)
app.command()(targets)


async def _run(*words: str, host: Host | None = None) -> Result:
    server = ("--server", str(host.grpc_address)) if host else ()
    return await asyncio.to_thread(CliRunner().invoke, app, [*words, *server])


def plain(result: Result) -> str:
    """What was said, without the box around it."""
    return " ".join(re.sub("[│╭╮╰╯─]", "", result.output).split())


async def _tells(host: Host, text: str) -> bool:
    return text in (await _run("explain", "serving/llama", host=host)).stdout


async def test_explain_tells_the_story(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.waiting = 45
    await keda.metric()
    result = await _run("explain", "serving/llama", host=host)
    assert result.exit_code == 0
    assert "serving/llama" in result.stdout
    assert "45 waiting" in result.stdout


async def test_explain_tells_what_stood_some_time_ago(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.waiting = 45
    await keda.metric()
    fleet.waiting = 145
    await until(lambda: _tells(host, "145 waiting"), "the longer queue")
    before = await _run("explain", "serving/llama", "--ago", "1h", host=host)
    assert before.exit_code == 0
    assert re.match(r"nothing older is remembered than this, of \d+s ago:\nserving/llama ", before.stdout)
    assert "45 waiting" in before.stdout
    assert "145 waiting" not in before.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("--ago", "lately"), "not a duration; right is, say, 90s"), (("--ago", "5m", "--watch"), "exclude")],
)
async def test_a_time_that_is_none_is_refused(words: tuple[str, ...], problem: str) -> None:
    result = await _run("explain", "serving/llama", *words)
    assert result.exit_code == 2
    assert problem in plain(result)


async def test_explain_for_machines_keeps_unknown_apart_from_zero(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.ready, fleet.starting = 1, 1
    await keda.metric()
    told = json.loads((await _run("explain", "serving/llama", "--json", host=host)).stdout)
    assert told["replicas"]["terminating"] == 0
    ready, starting = told["pods"]
    assert ready["waiting"] == 0
    assert "waiting" not in starting


async def test_watch_prints_decisions_until_the_server_stops(fleet: Fleet) -> None:
    async with hosted(fleet) as host:
        async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
            await Keda(channel).metric()
        watching = asyncio.create_task(_run("explain", "serving/llama", "--watch", "--json", host=host))
        asked = fleet.asked
        await until(lambda: fleet.asked > asked + 5, "some ticks")
    result = await watching
    assert result.exit_code == 0
    times = [json.loads(line)["time"] for line in result.stdout.splitlines()]
    assert len(times) >= 2
    assert times == sorted(times)


async def test_watch_that_loses_its_scaler_says_so(host: Host, keda: Keda) -> None:
    await keda.metric()
    async with Relay(host) as relay:
        watching = asyncio.create_task(_run("explain", "serving/llama", "--watch", "--json", "--server", relay.address))
        await until(lambda: relay.answered > 10_000, "some decisions")
        relay.cut()
        result = await watching
    assert result.exit_code == client.NO_SERVER
    assert f"the connection to the scaler at {relay.address} is lost" in result.stderr
    assert result.stdout.count('"story"') >= 1


class Relay:
    """Another address of a scaler, where connections can be cut."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._writers: list[asyncio.StreamWriter] = []
        self._pumps: list[asyncio.Task[None]] = []
        self.answered = 0
        """Bytes that came from the scaler."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def cut(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._host.grpc_address.host, self._host.grpc_address.port)
        self._writers.extend((writer, back))
        for source, sink in ((reader, back), (there, writer)):
            self._pumps.append(asyncio.create_task(self._pump(source, sink)))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(2**16):
            sink.write(data)
            self.answered += len(data) if sink is self._writers[0] else 0


async def test_an_unknown_target_is_named_with_those_that_are_known(host: Host, keda: Keda) -> None:
    await keda.metric()
    result = await _run("explain", "serving/qwen", host=host)
    assert result.exit_code == client.NO_TARGET
    assert "serving/llama" in result.output


async def test_a_target_without_a_decision_says_why(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.missing = "no such ScaledObject"
    await keda.refusal(Keda.metric)
    result = await _run("explain", "serving/llama", host=host)
    assert result.exit_code == client.NO_DECISION
    assert "no such ScaledObject" in result.output


async def test_without_a_server_it_says_what_to_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_S", 0.2)
    result = await _run("targets", "--server", "127.0.0.1:1")
    assert result.exit_code == client.NO_SERVER
    assert "no scaler answers at 127.0.0.1:1" in result.output
    assert "port-forward" in result.output


@pytest.mark.parametrize("word", ["llama", "serving/", "/llama", "a/b/c"])
async def test_a_target_is_namespace_and_name(word: str) -> None:
    result = await _run("explain", word)
    assert result.exit_code == 2
    assert "NAMESPACE/NAME" in result.output


async def test_the_namespace_may_stand_before_the_name_or_in_an_option(host: Host, keda: Keda) -> None:
    await keda.metric()
    for words in (["serving/llama"], ["llama", "-n", "serving"], ["serving/llama", "--namespace", "serving"]):
        assert (await _run("explain", *words, host=host)).exit_code == 0
    two = await _run("explain", "serving/llama", "-n", "batch")
    assert two.exit_code == 2
    assert "is in another namespace than --namespace 'batch'" in plain(two)


async def test_a_scaler_is_named_or_found_but_not_both(host: Host) -> None:
    for option in (["--port-forward"], ["--service", "keda/vllm-scaler"], ["--context", "prod"]):
        result = await _run("targets", *option, host=host)
        assert result.exit_code == 2
        assert "leave one or the other out" in plain(result)


async def test_without_kubectl_a_scaler_cannot_be_found_in_a_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await _run("targets", "--port-forward")
    assert result.exit_code == client.NO_SERVER
    assert "kubectl cannot be run: No such file or directory" in result.stderr


@pytest.mark.parametrize("service", ["vllm-scaler", "/vllm-scaler", "keda/", "a/b/c"])
async def test_a_service_is_namespace_and_name(service: str) -> None:
    result = await _run("targets", "--service", service)
    assert result.exit_code == 2
    assert "NAMESPACE/NAME, such as keda/vllm-scaler" in plain(result)


async def test_targets_are_a_table_for_people(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.waiting = 45
    await keda.metric()
    result = await _run("targets", host=host)
    assert result.exit_code == 0
    assert "serving/llama" in result.stdout
    assert "active" in result.stdout


async def test_how_long_ago_is_told_by_the_clock_of_the_scaler(fleet: Fleet) -> None:
    async with hosted(fleet, targets=Targets(World(fleet, fleet, clock=HourBehind()))) as host:
        async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
            fleet.waiting = 45
            await Keda(channel).metric()
        said = re.search(r"(\d+) s ago", (await _run("targets", host=host)).stdout)
        assert said is not None
        assert int(said[1]) < 1800


async def test_targets_are_json_for_machines(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.waiting = 45
    await keda.metric()
    (target,) = json.loads((await _run("targets", "--json", host=host)).stdout)
    assert (target["name"], target["state"], target["replicas"]["desired"]) == ("llama", "ACTIVE", 5)


async def test_no_targets_yet_is_said_and_no_error(host: Host) -> None:
    result = await _run("targets", host=host)
    assert result.exit_code == 0
    assert "no targets" in result.stdout


class HourBehind(Clock):
    """The clock of a machine that is an hour behind this one."""

    def utc(self) -> float:
        return time.time() - 3600


async def test_mutual_tls_needs_the_clients_certificate(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CONNECT_S", 2.0)
    authority = Authority(tmp_path, "test")
    server, mine = authority.issue("server", "scaler", hosts=["vllm-scaler.keda"]), authority.issue("mine", "me")
    files = TlsFiles(server.certificate, server.key, authority.certificate)
    async with hosted(fleet, tls=files) as host:
        trust = ("--ca-file", str(authority.certificate), "--server-name", "vllm-scaler.keda")
        mutual = ("--cert-file", str(mine.certificate), "--key-file", str(mine.key))
        assert (await _run("targets", *trust, *mutual, host=host)).exit_code == 0
        assert (await _run("targets", *trust, host=host)).exit_code == client.NO_SERVER
        plain = await _run("targets", host=host)
        assert plain.exit_code == client.NO_SERVER
        assert "add --tls or --ca-file" in plain.output
    assert (await _run("targets", *mutual[:2])).exit_code == 2
