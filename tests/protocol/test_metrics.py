"""The scaler's own metrics, as Prometheus scrapes them."""

from __future__ import annotations

import aiohttp
import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from scaler.serving import metrics
from scaler.serving.host import Host
from scaler.targets import Targets, World
from tests.protocol.world import NAME, NAMESPACE, POLICY, Fleet, Keda, hosted, until

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def _scrape(host: Host, accept: str = "text/plain") -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{host.http_address}/metrics", headers={"Accept": accept}) as answer,
    ):
        assert answer.status == 200
        return await answer.text()


async def _value(host: Host, name: str, **labels: str) -> float | None:
    """The one sample of a name with at least these labels."""
    for family in text_string_to_metric_families(await _scrape(host)):
        for sample in family.samples:
            if sample.name == f"vllm_scaler_{name}" and labels.items() <= sample.labels.items():
                return float(sample.value)
    return None


async def test_the_decision_and_what_it_was_made_from_are_shown(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.ready, fleet.starting, fleet.waiting, fleet.running = 2, 1, 45, 3
    await keda.metric()
    where = {"namespace": NAMESPACE, "scaled_object": NAME}
    wanted = {
        "desired_replicas": 5,
        "emission": 5,
        "arrives_at_replicas": 5,
        "requested_replicas": 3,
        "ready_replicas": 2,
        "starting_replicas": 1,
        "terminating_replicas": 0,
        "unschedulable_replicas": 0,
        "warm_replicas": 0,
        "room_replicas": 0,
        "unknown_pods": 0,
        "waiting_requests": 45,
        "running_requests": 3,
    }
    assert {name: await _value(host, name, **where) for name in wanted} == wanted
    assert await _value(host, "target_state", state="active", **where) == 1
    assert await _value(host, "demand_replicas", **where) == pytest.approx(4.8)


async def test_pods_without_a_node_are_told_with_what_they_lack(fleet: Fleet, host: Host, keda: Keda) -> None:
    await keda.metric()
    assert await _value(host, "capacity_blocked") is None
    fleet.unschedulable = 2
    await until(lambda: _at_least(host, 1, "capacity_blocked", lacks="nvidia.com/gpu"), "a blocked target")
    assert await _value(host, "target_state", state="capacity-blocked") == 1
    assert (await _value(host, "unschedulable_seconds") or 0) > 3600


async def test_the_parts_of_a_start_are_told(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.cold_start_s = 300.0
    await keda.metric()
    for name in ("start_up_seconds", "start_up_p90_seconds"):
        stages = ("all", "cold", "node", "image", "load", "warm")
        seen = [await _value(host, name, stage=stage) for stage in stages]
        assert seen[:5] == [pytest.approx(seconds) for seconds in (300, 300, 240, 10, 50)]
        assert seen[5] is None


async def test_changes_are_counted_by_their_rule(fleet: Fleet, host: Host, keda: Keda) -> None:
    await keda.metric()
    fleet.waiting = 50
    await until(lambda: _at_least(host, 1, "changes_total", rule="signals"), "a change made by the signals")


async def test_the_time_that_a_tick_takes_is_measured(host: Host, keda: Keda) -> None:
    await keda.metric()
    assert (await _value(host, "tick_duration_seconds_count") or 0) >= 1


async def test_pods_that_cannot_be_read_are_counted(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.silent = True
    await keda.metric()
    await until(lambda: _at_least(host, 1, "pod_reads_total", outcome="unknown"), "an unread pod")
    assert await _value(host, "unknown_pods") == 1


async def test_what_is_unknown_is_absent_and_not_zero(fleet: Fleet, host: Host, keda: Keda) -> None:
    fleet.silent = True
    await keda.metric()
    await until(lambda: _at_least(host, 1, "unknown_pods"))
    assert await _value(host, "waiting_requests") is None


async def test_calls_are_measured_by_method_and_code(host: Host, keda: Keda, channel: grpc.aio.Channel) -> None:
    await Keda(channel, {"upscaleDelay": "soon"}).refusal(Keda.active)
    await keda.active()
    method = "externalscaler.ExternalScaler/IsActive"
    for code in ("OK", "INVALID_ARGUMENT"):
        assert await _value(host, "rpc_duration_seconds_count", method=method, code=code) == 1


async def test_the_series_of_a_target_go_with_it(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = Targets(World(fleet, fleet))
    async with hosted(fleet, targets=targets) as host, grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        await Keda(channel).metric()
        assert await _value(host, "desired_replicas", scaled_object=NAME) is not None
        monkeypatch.setattr("scaler.targets.targets.FORGOTTEN_AFTER_S", -1.0)  # KEDA has not asked for long
        targets._forget()
        assert f'scaled_object="{NAME}"' not in await _scrape(host)


async def test_a_keda_that_does_not_ask_is_counted(fleet: Fleet) -> None:
    targets = Targets(World(fleet, fleet))
    async with hosted(fleet, targets=targets) as host, grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        await Keda(channel).metric()
        assert await _value(host, "keda_silent") == 0
        (target,) = targets
        target.unasked = "KEDA has not asked"
        assert await _value(host, "keda_silent") == 1


async def test_latencies_stand_beside_their_objectives(fleet: Fleet) -> None:
    fleet.ttft_s = 3.5
    policy = POLICY | {"ttftSlo": "2s", "itlSlo": "50ms", "percentile": "99", "lookBackPeriod": "1s"}
    async with hosted(fleet) as host, grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        await Keda(channel, policy).metric()
        await until(lambda: _at_least(host, 3.0, "latency_seconds", latency="ttft"), "a slow first token")
        objectives = {name: await _value(host, "slo_seconds", latency=name) for name in ("ttft", "tpot", "e2e")}
        assert objectives == {"ttft": 2.0, "tpot": 0.05, "e2e": None}
        assert await _value(host, "latency_seconds", latency="tpot") is None  # nothing of it was observed


async def test_only_the_replica_that_keda_asks_calls_itself_leader(fleet: Fleet) -> None:
    async with hosted(fleet, leading=False) as host:
        assert await _value(host, "leader") == 0
        await host.lead()
        assert await _value(host, "leader") == 1
        await host.stand_by()
        assert await _value(host, "leader") == 0


async def test_a_trigger_that_is_wrong_is_counted_served_or_not(host: Host, channel: grpc.aio.Channel) -> None:
    wrong = Keda(channel, {"upscaleDelay": "soon"})
    await wrong.refusal(Keda.active)
    assert await _value(host, "trigger_invalid") == 1
    await Keda(channel).metric()
    assert await _value(host, "trigger_invalid") == 0
    await wrong.active()
    assert await _value(host, "trigger_invalid") == 1


async def test_openmetrics_is_spoken_where_it_is_asked_for(host: Host) -> None:
    assert (await _scrape(host, "application/openmetrics-text; version=1.0.0")).endswith("# EOF\n")


async def test_every_family_is_documented(fleet: Fleet, host: Host, keda: Keda) -> None:
    await keda.metric()
    for family in text_string_to_metric_families(await _scrape(host)):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"| `{name}` |" in (metrics.__doc__ or "")


async def _at_least(host: Host, wanted: float, name: str, **labels: str) -> bool:
    return (await _value(host, name, **labels) or 0) >= wanted
