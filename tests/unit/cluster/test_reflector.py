from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.reflector import Key, Reflector, Timing
from scaler.cluster.resources import PODS
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.objects import Json, ready_pod
from tests.waiting import background, until

QUICK = Timing(watch_s=1.0, idle_grace_s=0.5, back_off_s=0.01, back_off_max_s=0.1, refused_s=0.05)
LONG = Timing(watch_s=60.0, back_off_s=0.01, back_off_max_s=0.1, refused_s=0.05)


def label(item: Json, _before: str | None) -> str:
    return str(item["metadata"]["labels"]["app"])


class Watched:
    """A reflector of pods that keeps their label `app`, and the changes that it told."""

    def __init__(self, client: ApiClient, timing: Timing, parse: Callable[[Json, str | None], str | None]) -> None:
        self.changes: list[tuple[Key, str | None, str | None]] = []
        self.reflector = Reflector(client, PODS, parse, on_change=self._changed, timing=timing)

    def _changed(self, key: Key, before: str | None, after: str | None) -> None:
        self.changes.append((key, before, after))

    @property
    def labels(self) -> dict[str, str]:
        return {name: kept for (_, name), kept in sorted(self.reflector.items.items())}


@asynccontextmanager
async def watching(
    client: ApiClient, timing: Timing = LONG, parse: Callable[[Json, str | None], str | None] = label
) -> AsyncIterator[Watched]:
    watched = Watched(client, timing, parse)
    async with background(watched.reflector.run()):
        yield watched


async def standing(api: FakeApi, watched: Watched, watches: int = 1) -> None:
    await until(lambda: api.requests["watch", "pods"] >= watches and watched.reflector.error == "", "a watch")
    await until(lambda: time.monotonic() - watched.reflector.alive_until() < 0.01, "a watch that stands")


async def test_changes_arrive_as_they_happen(api: FakeApi, client: ApiClient) -> None:
    await api.put(PODS, ready_pod("a", app="x"), ready_pod("b", app="x"))
    async with watching(client) as watched:
        await watched.reflector.synced.wait()
        await standing(api, watched)
        await api.put(PODS, ready_pod("c", app="x"))
        await api.put(PODS, ready_pod("a", app="y"))
        await api.delete(PODS, "serving", "b")
        await until(lambda: watched.labels == {"a": "y", "c": "x"}, "all changes")
        assert watched.changes == [
            (("serving", "a"), None, "x"),
            (("serving", "b"), None, "x"),
            (("serving", "c"), None, "x"),
            (("serving", "a"), "x", "y"),
            (("serving", "b"), "x", None),
        ]
    assert api.requests["list", "pods"] == 1


async def test_change_that_changes_nothing_for_us_is_not_told(api: FakeApi, client: ApiClient) -> None:
    await api.put(PODS, ready_pod("a", app="x"))
    async with watching(client) as watched:
        await standing(api, watched)
        await api.put(PODS, ready_pod("a", app="x"))
        await api.put(PODS, ready_pod("b", app="x"))
        await until(lambda: len(watched.changes) == 2, "the second pod")
        assert [key[1] for key, _, _ in watched.changes] == ["a", "b"]


async def test_long_list_comes_in_pages(api: FakeApi, client: ApiClient) -> None:
    await api.put(PODS, *(ready_pod(f"p{i}", app="x") for i in range(25)))
    async with watching(client, Timing(page=10)) as watched:
        await watched.reflector.synced.wait()
        assert len(watched.labels) == 25
    assert api.requests["list", "pods"] == 3


async def test_watch_that_ends_in_time_goes_on_where_it_was(api: FakeApi, client: ApiClient) -> None:
    async with watching(client, QUICK) as watched:
        await standing(api, watched, watches=3)
        await api.put(PODS, ready_pod("a", app="x"))
        await until(lambda: watched.labels == {"a": "x"}, "the pod")
    assert api.requests["list", "pods"] == 1


async def test_watch_that_breaks_off_goes_on_where_it_was(api: FakeApi, client: ApiClient) -> None:
    async with watching(client) as watched:
        await standing(api, watched)
        await api.drop_watches()
        await api.put(PODS, ready_pod("a", app="x"))
        await until(lambda: watched.labels == {"a": "x"}, "what came while no watch stood")
    assert api.requests["list", "pods"] == 1


async def test_expired_version_is_listed_anew_and_what_went_meanwhile_is_told(api: FakeApi, client: ApiClient) -> None:
    await api.put(PODS, ready_pod("a", app="x"), ready_pod("b", app="x"))
    async with watching(client) as watched:
        await standing(api, watched)
        await api.stop()
        await api.delete(PODS, "serving", "a")
        await api.put(PODS, ready_pod("b", app="y"), ready_pod("c", app="x"))
        api.forget_history()
        await api.start()
        await until(lambda: watched.labels == {"b": "y", "c": "x"}, "the present")
        assert (("serving", "a"), "x", None) in watched.changes
        await standing(api, watched)
    assert api.requests["list", "pods"] == 2


async def test_expiry_told_within_the_watch_is_listed_anew(api: FakeApi, client: ApiClient) -> None:
    async with watching(client) as watched:
        await standing(api, watched)
        await api.put(PODS, ready_pod("a", app="x"), said=False)
        status = {"kind": "Status", "code": 410, "message": "too old resource version"}
        await api.say(PODS, {"type": "ERROR", "object": status})
        await until(lambda: watched.labels == {"a": "x"}, "the pod that no event told of")


async def test_silent_watch_is_noticed_and_what_it_kept_to_itself_is_found(api: FakeApi, client: ApiClient) -> None:
    async with watching(client, QUICK) as watched:
        await standing(api, watched)
        api.silent = True
        await api.put(PODS, ready_pod("a", app="x"))
        await until(lambda: watched.labels == {"a": "x"}, "the pod that the watch kept to itself")
    assert api.requests["list", "pods"] >= 2


async def test_view_is_right_now_while_the_watch_stands_and_ages_when_it_is_gone(
    api: FakeApi, client: ApiClient
) -> None:
    async with watching(client) as watched:
        await standing(api, watched)
        await api.stop()
        await until(lambda: watched.reflector.error, "the end of the watch")
        gone = watched.reflector.alive_until()
        await until(lambda: time.monotonic() > gone + 0.3, "some time")
        assert watched.reflector.alive_until() == gone
        assert "no way to the API server" in watched.reflector.error
        await api.start()
        await standing(api, watched)
        assert watched.reflector.alive_until() > gone
    assert api.requests["list", "pods"] == 1


@pytest.mark.parametrize("status", [429, 500, 503, 504])
@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_passing_trouble_of_the_api_server_is_sat_out(
    api: FakeApi, client: ApiClient, verb: str, status: int
) -> None:
    trouble = {"kind": "Status", "code": status, "message": "not now"}
    api.refuse[verb, "pods"] = [(status, trouble, {})] * 4
    await api.put(PODS, ready_pod("a", app="x"))
    async with watching(client) as watched:
        await standing(api, watched)
        assert watched.labels == {"a": "x"}
        await api.put(PODS, ready_pod("b", app="x"))
        await until(lambda: watched.labels == {"a": "x", "b": "x"}, "the second pod")


async def test_wait_that_the_api_server_asks_for_is_kept(api: FakeApi, client: ApiClient) -> None:
    api.refuse["list", "pods"] = [(429, {"message": "slow down"}, {"Retry-After": "1"})]
    began = time.monotonic()
    async with watching(client) as watched:
        await watched.reflector.synced.wait()
    assert time.monotonic() - began >= 1.0


async def test_refusal_is_told_once_as_the_missing_rule_and_ends_when_the_right_is_given(
    api: FakeApi, client: ApiClient
) -> None:
    api.forbidden.add(("list", "pods"))
    await api.put(PODS, ready_pod("a", app="x"))
    async with watching(client) as watched:
        await watched.reflector.settled.wait()
        assert not watched.reflector.synced.is_set()
        assert watched.reflector.error == (
            "system:serviceaccount:keda:scaler may not list pods in all namespaces: a ClusterRole with the rule "
            '{apiGroups: [""], resources: ["pods"], verbs: ["list"]} is missing'
        )
        api.forbidden.clear()
        await watched.reflector.synced.wait()
        assert watched.labels == {"a": "x"}


async def test_relist_finds_what_the_watch_has_missed(api: FakeApi, client: ApiClient) -> None:
    async with watching(client) as watched:
        await standing(api, watched)
        await api.put(PODS, ready_pod("a", app="x"), said=False)
        watched.reflector.relist()
        await until(lambda: watched.labels == {"a": "x"}, "the pod that no event told of")
        await standing(api, watched, watches=2)
    assert api.requests["list", "pods"] == 2


async def test_odd_object_hides_no_other(api: FakeApi, client: ApiClient) -> None:
    odd = ready_pod("odd", app="x")
    del odd["metadata"]["labels"]
    await api.put(PODS, odd, ready_pod("a", app="x"))
    async with watching(client) as watched:
        await watched.reflector.synced.wait()
        assert watched.labels == {"a": "x"}


async def test_answer_that_is_not_json_is_trouble_like_any_other(api: FakeApi, client: ApiClient) -> None:
    api.refuse["list", "pods"] = [(200, {"no": "list"}, {})]
    await api.put(PODS, ready_pod("a", app="x"))
    async with watching(client) as watched:
        await watched.reflector.synced.wait()
        assert watched.labels == {"a": "x"}


async def test_object_of_any_size_comes_through_a_watch(api: FakeApi, client: ApiClient) -> None:
    async with watching(client) as watched:
        await standing(api, watched)
        await api.put(PODS, ready_pod("big", app="x" * 6_000_000))
        await until(lambda: len(watched.labels.get("big", "")) == 6_000_000, "the big object")


async def test_forgetting_tells_of_every_object(api: FakeApi, client: ApiClient) -> None:
    await api.put(PODS, ready_pod("a", app="x"))
    async with watching(client) as watched:
        await watched.reflector.synced.wait()
    watched.reflector.clear()
    assert watched.changes[-1] == (("serving", "a"), "x", None)
    assert watched.labels == {}


@pytest.mark.parametrize("seed", range(5))
async def test_view_ends_as_the_truth_whatever_happens_on_the_way(api: FakeApi, client: ApiClient, seed: int) -> None:
    chance = random.Random(seed)
    trouble: tuple[int, Json, dict[str, str]] = (
        500,
        {"kind": "Status", "code": 500, "message": "etcdserver: request timed out"},
        {},
    )

    def truth() -> dict[str, str]:
        return {item["metadata"]["name"]: label(item, None) for item in api.items(PODS)}

    async def change() -> None:
        name = f"pod-{chance.randrange(8)}"
        if name in truth() and chance.random() < 0.5:
            await api.delete(PODS, "serving", name)
        else:
            await api.put(PODS, ready_pod(name, app=chance.choice("xyz")))

    async def away() -> None:
        await api.stop()
        await change()
        await api.start()

    async def history_lost() -> None:
        await api.drop_watches()
        await change()
        api.forget_history()

    async def refusals() -> None:
        api.refuse["watch", "pods"] = [trouble] * chance.randrange(3)
        api.refuse["list", "pods"] = [trouble] * chance.randrange(3)
        await api.drop_watches()

    async with watching(client) as watched:
        for _ in range(60):
            happening = chance.choice([change, change, change, api.drop_watches, away, history_lost, refusals])
            await happening()
            await asyncio.sleep(chance.choice([0.0, 0.0, 0.01]))

        await until(lambda: watched.labels == truth(), "the truth")
        told: dict[str, str] = {}
        for (_, name), before, after in watched.changes:
            assert told.get(name) == before
            if after is None:
                del told[name]
            else:
                told[name] = after
        assert told == truth()
