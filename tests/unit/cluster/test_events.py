from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from scaler.cluster import events
from scaler.cluster.client import ApiClient
from scaler.cluster.events import BURST, EventRecorder
from scaler.cluster.model import ScaledObject
from scaler.cluster.resources import EVENTS
from scaler.cluster.scaled_objects import parse_scaled_object
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.objects import Json, scaled_object
from tests.waiting import background, until


def about(name: str = "llama") -> ScaledObject:
    found = parse_scaled_object(scaled_object(name), lambda _: True)
    assert found is not None
    return found


@pytest.fixture
async def recorder(client: ApiClient) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, "vllm-scaler-0")
    async with background(recorder.run()):
        yield recorder


async def written(api: FakeApi, count: int) -> list[Json]:
    await until(lambda: len(api.items(EVENTS)) >= count, f"{count} events")
    return api.items(EVENTS)


async def test_event_names_its_scaled_object_and_its_speaker(api: FakeApi, recorder: EventRecorder) -> None:
    recorder.say(about(), "InvalidTrigger", "targetOngoingRequests: 'x' is wrong", "Warning")
    (event,) = await written(api, 1)
    assert event["metadata"]["namespace"] == "serving"
    assert event["regarding"]["kind"] == "ScaledObject"
    assert (event["regarding"]["name"], event["regarding"]["uid"]) == ("llama", "uid-llama")
    assert (event["type"], event["reason"]) == ("Warning", "InvalidTrigger")
    assert event["note"] == "targetOngoingRequests: 'x' is wrong"
    assert event["reportingController"] == "vllm-scaler"
    assert event["reportingInstance"] == "vllm-scaler-0"


async def test_repeated_event_is_counted_and_not_said_anew(api: FakeApi, recorder: EventRecorder) -> None:
    for _ in range(5):
        recorder.say(about(), "Stale", "no pod can be read", "Warning")
    await written(api, 1)
    await recorder.flush()
    (event,) = api.items(EVENTS)
    assert event["series"]["count"] == 5
    patches = api.requests["patch", "events"]
    await recorder.flush()
    assert api.requests["patch", "events"] == patches


async def test_other_words_or_another_object_make_another_event(api: FakeApi, recorder: EventRecorder) -> None:
    recorder.say(about(), "Stale", "one")
    recorder.say(about(), "Stale", "two")
    recorder.say(about("qwen"), "Stale", "one")
    assert len(await written(api, 3)) == 3


async def test_flood_about_one_object_is_cut_and_others_are_heard(api: FakeApi, recorder: EventRecorder) -> None:
    for i in range(10 * BURST):
        recorder.say(about(), "Noise", f"number {i}")
    recorder.say(about("qwen"), "Quiet", "hear me")
    found = await written(api, BURST + 1)
    assert [event["note"] for event in found][-1] == "hear me"
    assert len(found) == BURST + 1


async def test_warning_is_heard_among_counts_that_change_all_the_time(api: FakeApi, recorder: EventRecorder) -> None:
    for i in range(2 * BURST):
        recorder.say(about(), "DesiredReplicas", f"{i} → {i + 1}")
    recorder.say(about(), "Stale", "no pod can be read", "Warning")
    found = await written(api, BURST + 1)
    assert [event["reason"] for event in found][-1] == "Stale"


async def test_silence_earns_new_events(api: FakeApi, recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("scaler.cluster.events.time.time", lambda: now[0])
    for i in range(2 * BURST):
        recorder.say(about(), "Noise", f"number {i}")
    await written(api, BURST)
    now[0] += events.REFILL_S
    recorder.say(about(), "Noise", "one more")
    recorder.say(about(), "Noise", "one too many")
    assert [event["note"] for event in await written(api, BURST + 1)][-1] == "one more"


async def test_event_that_comes_back_much_later_is_said_anew(
    api: FakeApi, recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("scaler.cluster.events.time.time", lambda: now[0])
    recorder.say(about(), "Stale", "again")
    await written(api, 1)
    now[0] += events.SERIES_S + 1
    recorder.say(about(), "Stale", "again")
    assert len(await written(api, 2)) == 2


async def test_event_that_the_cluster_has_dropped_is_said_anew(api: FakeApi, recorder: EventRecorder) -> None:
    recorder.say(about(), "Stale", "again")
    (event,) = await written(api, 1)
    await api.delete(EVENTS, "serving", event["metadata"]["name"])
    recorder.say(about(), "Stale", "again")
    await recorder.flush()
    recorder.say(about(), "Stale", "again")
    assert len(await written(api, 1)) == 1


async def test_long_note_is_cut_to_what_the_api_takes(api: FakeApi, recorder: EventRecorder) -> None:
    recorder.say(about(), "Stale", "x" * 5000)
    (event,) = await written(api, 1)
    assert len(event["note"]) == 1024


async def test_event_that_may_not_be_written_is_let_go(api: FakeApi, recorder: EventRecorder) -> None:
    api.forbidden.add(("create", "events"))
    recorder.say(about(), "Stale", "one")
    await until(lambda: api.requests["create", "events"] == 1, "the try")
    api.forbidden.clear()
    recorder.say(about(), "Stale", "two")
    assert [event["note"] for event in await written(api, 1)] == ["two"]
