"""The live page in a real browser: it shows what the Insight service says, to everyone, in any light."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from playwright.async_api import Browser, expect

from scaler.serving.host import Host, Ports
from scaler.serving.protocol import insight_pb2 as pb
from scaler.serving.protocol.insight_pb2_grpc import InsightStub
from scaler.targets import Target, Targets, World, story
from tests.browser.visitor import Visitor, place, visiting
from tests.protocol.world import LOOPBACK, NAME, NAMESPACE, POLICY, Fleet, until

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


async def test_the_list_shows_what_the_insight_service_lists(visitor: Visitor, host: Host) -> None:
    await visitor.open()
    cells = await visitor.cells("serving/llama")
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        (told,) = (await InsightStub(channel).ListTargets(pb.ListTargetsRequest())).targets
    counts = told.replicas
    assert cells["State"].endswith(pb.State.Name(told.state).lower())
    assert [cells[title] for title in ("Wanted", "Ready", "Starting", "Unknown", "Waiting", "Running")] == [
        f"{value:g}"
        for value in (counts.desired, counts.ready, counts.starting, told.unknown_pods, told.waiting, told.running)
    ]
    assert cells["Limits"] == f"{counts.minimum}–{counts.maximum}"
    assert told.last_change in cells["Last change"]


async def test_a_target_shows_what_the_insight_service_explains(visitor: Visitor, host: Host, targets: Targets) -> None:
    target = targets.find(
        NAMESPACE, "slow", {**POLICY, "metricsInterval": "60s", "lookBackPeriod": "120s"}
    )  # one decision for the whole test
    await visitor.open(place(target))
    await expect(visitor.page.locator(".story")).to_contain_text("KEDA is told")
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        told = await InsightStub(channel).Explain(pb.TargetRef(namespace=NAMESPACE, name="slow"))
    assert await visitor.tile("Wanted") == f"{told.replicas.desired}"
    assert await visitor.tile("Waiting") == f"{told.load.waiting:g}"
    assert await visitor.tile("KEDA is told") == f"{told.emission.value:g}"
    await expect(visitor.page.locator(".because")).to_contain_text(told.last_change)
    for pod in told.pods:
        cells = await visitor.cells(pod.pod)
        assert cells["Phase"] == pod.phase
        assert cells["Waiting"] == (f"{pod.waiting:g}" if pod.HasField("waiting") else "–")
    assert await visitor.story() == told.story


async def test_the_page_follows_the_target(visitor: Visitor, fleet: Fleet, target: Target) -> None:
    await visitor.open(place(target))
    wanted = visitor.page.locator(".facts .main .value")
    await expect(wanted).to_have_text("5")
    fleet.waiting = 120
    await expect(wanted).to_have_text("14")
    await expect(visitor.page.get_by_role("status").filter(has_text="llama now wants 14")).to_be_attached()


async def test_a_moment_of_the_past_is_told_as_explain_told_it(visitor: Visitor, fleet: Fleet, target: Target) -> None:
    await visitor.open(place(target))
    wanted = visitor.page.locator(".facts .main .value")
    await expect(wanted).to_have_text("5")
    fleet.waiting = 120
    await expect(wanted).to_have_text("14")
    slider = visitor.page.get_by_role("slider", name="Moment to look at")
    await slider.focus()
    await slider.press("Home")
    await expect(wanted).to_have_text("5")
    await expect(visitor.page.get_by_role("heading", name="How it was decided at")).to_be_visible()
    assert "5 wanted" in str(await slider.get_attribute("aria-valuetext"))
    assert await visitor.story() in {story(target, record) for record in target.records()}
    await visitor.page.get_by_role("button", name="Back to now").click()
    await expect(wanted).to_have_text("14")


async def test_a_click_into_a_chart_looks_at_that_moment(visitor: Visitor, fleet: Fleet, target: Target) -> None:
    await visitor.open(place(target))
    wanted = visitor.page.locator(".facts .main .value")
    await expect(wanted).to_have_text("5")
    fleet.waiting = 120
    await expect(wanted).to_have_text("14")
    await visitor.page.locator(".u-over").first.click(position={"x": 1, "y": 20})
    await expect(visitor.page.get_by_role("button", name="Back to now")).to_be_visible()
    await expect(wanted).to_have_text("5")


async def test_the_configuration_says_where_each_value_comes_from(visitor: Visitor, target: Target) -> None:
    await visitor.open(place(target))
    await visitor.page.get_by_text("Configuration in force").first.click()
    ours, preset, default, cluster = [
        await visitor.cells(key) for key in ("targetOngoingRequests", "lookAhead", "headroom", "maxReplicaCount")
    ]
    assert (ours["Value"], ours["From"]) == ("10", "trigger")
    assert (preset["Value"], preset["From"]) == ("auto", "preset adaptive")
    assert (default["Value"], default["From"]) == ("0", "default")
    assert (cluster["Value"], cluster["From"]) == ("20", "ScaledObject")


async def test_a_pod_that_cannot_be_read_is_seen_at_once(visitor: Visitor, fleet: Fleet, target: Target) -> None:
    fleet.silent = True
    await visitor.open()
    await expect(visitor.page.get_by_role("cell", name="3 of the ready pods cannot be read")).to_be_visible()
    await visitor.page.get_by_role("button", name="Need attention 1").click()
    await visitor.open(place(target))
    pods = visitor.page.get_by_role("table", name="Pods")
    await expect(pods.get_by_role("cell", name="connection refused")).to_have_count(3)
    assert (await visitor.cells("llama-0"))["Waiting"] == "–"
    assert await visitor.tile("Waiting") == "–"


async def test_pods_without_a_node_are_told_with_what_they_lack(visitor: Visitor, fleet: Fleet, target: Target) -> None:
    fleet.unschedulable, fleet.cold_start_s = 2, 300.0
    await visitor.open(place(target))
    page = visitor.page
    await expect(page.locator("[data-state=CAPACITY_BLOCKED]").first).to_contain_text("capacity-blocked")
    await expect(page.locator(".facts")).to_contain_text("lacking nvidia.com/gpu")
    await expect(page.locator(".facts")).to_contain_text("takes 5 min with a new node")
    await expect(page.locator(".story")).to_contain_text("CAPACITY-BLOCKED: 2 pods found no node")


async def test_everything_can_be_done_by_keyboard(visitor: Visitor, targets: Targets, target: Target) -> None:
    for name in ("mistral", "qwen"):
        targets.find(NAMESPACE, name, POLICY)
    page = visitor.page
    await visitor.open()
    await expect(page.get_by_role("row")).to_have_count(4)
    await page.keyboard.press("/")
    assert await visitor.focused() == "search"
    await page.keyboard.type("serving/m")
    await expect(page.get_by_role("rowheader")).to_have_text(["serving/mistral"])
    await page.keyboard.press("Control+a")
    await page.keyboard.press("Delete")
    await page.get_by_role("link", name="serving/llama").focus()
    await page.keyboard.press("ArrowDown")
    assert await visitor.focused() == "serving/mistral"
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1, name="serving/mistral")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="serving/mistral")).to_be_focused()


async def test_the_list_is_sorted_by_a_column_on_request(
    visitor: Visitor, fleet: Fleet, targets: Targets, target: Target
) -> None:
    targets.find(NAMESPACE, "qwen", {**POLICY, "targetOngoingRequests": "42"})
    await visitor.open()
    rows, page = visitor.page.get_by_role("rowheader"), visitor.page
    await expect(rows).to_have_text(["serving/llama", "serving/qwen"])
    wanted = page.get_by_role("columnheader", name="Wanted")
    await wanted.get_by_role("button").click()
    await expect(wanted).to_have_attribute("aria-sort", "descending")
    await expect(rows).to_have_text(["serving/llama", "serving/qwen"])
    await wanted.get_by_role("button").click()
    await expect(wanted).to_have_attribute("aria-sort", "ascending")
    await expect(rows).to_have_text(["serving/qwen", "serving/llama"])


async def test_it_fits_a_phone(browser: Browser, host: Host, target: Target) -> None:
    async with visiting(browser, host, **PHONE) as visitor:
        await visitor.open()
        cells = await visitor.cells("serving/llama")
        assert cells["Wanted"] == "5"
        assert not await visitor.overflows()
        await visitor.page.get_by_role("link", name="serving/llama").tap()
        await expect(visitor.page.locator(".chart canvas")).to_have_count(4)
        assert not await visitor.overflows()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_light_and_dark_follow_the_system_until_one_is_chosen(
    browser: Browser, host: Host, target: Target, scheme: str
) -> None:
    brightness = "() => Math.max(...getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g))"
    async with visiting(browser, host, color_scheme=scheme) as visitor:
        await visitor.open()
        assert (await visitor.page.evaluate(brightness) > 128) == (scheme == "light")
        button = visitor.page.get_by_role("button", name="Theme")
        while not (await button.text_content() or "").startswith("Dark"):
            await button.click()
        assert await visitor.page.evaluate(brightness) < 128
        await visitor.page.reload()
        assert await visitor.page.evaluate(brightness) < 128


async def test_a_target_that_nobody_knows_is_told_calmly_and_shown_once_it_comes(
    visitor: Visitor, targets: Targets
) -> None:
    await visitor.open(f"#/{NAMESPACE}/qwen")
    await expect(visitor.page.locator(".notice")).to_contain_text("no target serving/qwen; known are serving/llama")
    targets.find(NAMESPACE, "qwen", POLICY)
    await expect(visitor.page.locator(".facts .main .value")).to_have_text("5")


async def test_an_empty_list_says_how_a_target_begins(browser: Browser, host: Host) -> None:
    async with visiting(browser, host) as visitor:
        await visitor.open()
        await expect(visitor.page.get_by_role("status").filter(has_text="No targets yet")).to_be_visible()


async def test_before_the_first_decision_the_page_says_what_is_missing(
    browser: Browser, host: Host, fleet: Fleet, targets: Targets
) -> None:
    fleet.missing = "serving/llama: no such ScaledObject"
    target = targets.find(NAMESPACE, NAME, POLICY)
    async with visiting(browser, host) as visitor:
        await visitor.open(place(target))
        await expect(visitor.page.locator(".notice")).to_have_text("serving/llama: no such ScaledObject")


async def test_a_page_left_open_goes_on_when_the_scaler_is_back(browser: Browser, fleet: Fleet) -> None:
    targets = Targets(World(fleet, fleet))
    async with Host(targets, Ports(LOOPBACK, LOOPBACK)) as host:
        target = targets.find(NAMESPACE, NAME, POLICY)
        address = host.http_address
        tab = visiting(browser, host)
        visitor = await tab.__aenter__()
        await visitor.open(place(target))
        await expect(visitor.page.locator("#line")).to_have_text("live")
    await expect(visitor.page.locator("#line")).to_contain_text("not connected")
    fleet.waiting = 120
    targets = Targets(World(fleet, fleet))
    async with Host(targets, Ports(LOOPBACK, address)):
        targets.find(NAMESPACE, NAME, POLICY)
        await expect(visitor.page.locator("#line")).to_have_text("live")
        await expect(visitor.page.locator(".facts .main .value")).to_have_text("14")
        await tab.__aexit__(None, None, None)


async def test_a_wrong_clock_in_the_browser_is_told_and_changes_no_age(visitor: Visitor, target: Target) -> None:
    await visitor.page.clock.set_system_time(datetime.now(UTC) - timedelta(hours=1))
    await visitor.open(place(target))
    await expect(visitor.page.locator("#foot")).to_contain_text("this browser's clock is 60 min behind the server's")
    await expect(visitor.page.locator(".because")).to_contain_text(re.compile(r"Last change \d+ (ms|s) ago"))


async def test_a_page_that_is_not_looked_at_costs_nothing_and_comes_back(visitor: Visitor) -> None:
    def served() -> bool:
        return any(task.get_name() == "page overview" for task in asyncio.all_tasks())

    async def hide(hidden: bool) -> None:
        script = """hidden => {
            Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
        await visitor.page.evaluate(script, hidden)

    await visitor.open()
    await visitor.cells("serving/llama")
    assert served()
    await hide(True)
    await until(lambda: not served(), "the end of the stream")
    await hide(False)
    await until(served, "a new stream")
    await expect(visitor.page.locator("#line")).to_have_text("live")


async def test_two_triggers_of_one_scaled_object_are_told_apart(visitor: Visitor, targets: Targets) -> None:
    other = targets.find(NAMESPACE, NAME, {**POLICY, "targetOngoingRequests": "6"})
    await visitor.open()
    await visitor.page.get_by_role("link", name=f"serving/llama ({other.trigger})").click()
    await expect(visitor.page.locator(".facts .main .value")).to_have_text("7")


async def test_a_page_with_a_token_asks_for_it_once(browser: Browser, fleet: Fleet, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("open sesame\n")
    targets = Targets(World(fleet, fleet))
    async with Host(targets, Ports(LOOPBACK, LOOPBACK, page_token=secret)) as host:
        targets.find(NAMESPACE, NAME, POLICY)
        async with visiting(browser, host) as visitor:
            page = visitor.page
            await visitor.open()
            await page.get_by_label("Token").fill("knock knock")
            await page.keyboard.press("Enter")
            await expect(page.get_by_text("this is not the token")).to_be_visible()
            await page.get_by_label("Token").fill("open sesame")
            await page.keyboard.press("Enter")
            await page.get_by_role("link", name="serving/llama").click()
            await expect(page.locator(".chart canvas")).to_have_count(4)


async def test_a_thousand_targets_are_listed_and_found(browser: Browser, fleet: Fleet) -> None:
    targets = Targets(World(fleet, fleet))
    async with Host(targets, Ports(LOOPBACK, LOOPBACK)) as host:
        for i in range(1000):
            targets.find(NAMESPACE, f"model-{i:03}", {**POLICY, "metricsInterval": "5s"})
        await until(lambda: all(target.latest for target in targets), "a thousand decisions")
        async with visiting(browser, host) as visitor:
            await visitor.open()
            rows = visitor.page.get_by_role("rowheader")
            await expect(rows).to_have_count(1000)
            await visitor.page.get_by_role("searchbox").fill("model-77")
            await expect(rows).to_have_count(10)
            await visitor.page.get_by_role("link", name="model-777").click()
            await expect(visitor.page.get_by_role("heading", level=1)).to_have_text("serving/model-777")
