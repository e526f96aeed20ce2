from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from scaler.exposition.sample import Sample
from scaler.sources.record_format import Tick
from scaler.sources.recording import Recorder, RecordingError
from scaler.sources.replay import RecordingSource
from scaler.sources.source import Endpoint, ReadOptions, Unknown

START = 1_790_000_000.0


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def waiting(requests: float) -> Sample:
    return Sample(engine="vllm", waiting=requests)


def tick(after: float, target: str = "prod/chat", **pods: Sample | Unknown) -> Tick:
    return Tick(START + after, target, 1, 1, len(pods), 0, 0, 0, 1, 8, pods)


@pytest.fixture
def play(tmp_path: Path, clock: Clock):
    def recorded(*ticks: Tick) -> RecordingSource:
        path = tmp_path / "ticks.jsonl"

        async def record() -> None:
            recorder = Recorder(path)
            for each in ticks:
                recorder.record(each)
            recorder.close()

        asyncio.run(record())
        return RecordingSource(path, clock=clock)

    return recorded


def ask(source: RecordingSource, *pods: str, namespace: str = "prod") -> Mapping[str, Sample | Unknown]:
    endpoints = [Endpoint(pod, "uid", "", 0) for pod in pods]
    return asyncio.run(source.sample(endpoints, ReadOptions(namespace=namespace), 1.0))


def test_each_moment_gets_what_was_said_last_before_it(play, clock: Clock) -> None:
    source = play(tick(0, a=waiting(1)), tick(1, a=waiting(2)), tick(2, a=Unknown("timed out")))
    said = []
    for _ in range(6):
        said.append(ask(source, "a")["a"])
        clock.now += 0.5

    assert said == [waiting(1), waiting(1), waiting(2), waiting(2), Unknown("timed out"), Unknown("timed out")]


def test_pods_of_another_namespace_are_not_mixed_up(play) -> None:
    source = play(tick(0, "prod/chat", a=waiting(1)), tick(0, "lab/chat", a=waiting(9)))

    assert ask(source, "a", namespace="prod") == {"a": waiting(1)}
    assert ask(source, "a", namespace="lab") == {"a": waiting(9)}


def test_a_pod_that_is_gone_from_the_recording_is_unknown(play, clock: Clock) -> None:
    source = play(tick(0, a=waiting(1), b=waiting(2)), tick(1, a=waiting(3)), tick(5, a=waiting(3)))
    clock.now += 1

    assert ask(source, "a", "b") == {
        "a": waiting(3),
        "b": Unknown("not in the recording at 2026-09-21 14:13:21 UTC"),
    }


def test_a_gap_in_the_recording_is_not_an_answer(play, clock: Clock) -> None:
    source = play(tick(0, a=waiting(1)), tick(100, a=waiting(2)))
    clock.now += 61

    assert ask(source, "a") == {"a": Unknown("not in the recording at 2026-09-21 14:14:21 UTC")}


def test_after_the_end_all_pods_are_unknown(play, clock: Clock) -> None:
    source = play(tick(0, a=waiting(1)), tick(1, a=waiting(2)))
    clock.now += 1000

    assert ask(source, "a") == {"a": Unknown("the recording ends at 2026-09-21 14:13:21 UTC")}


def test_damage_ends_the_replay_with_its_line(play, clock: Clock, tmp_path: Path) -> None:
    source = play(tick(0, a=waiting(1)))
    path = tmp_path / "ticks.jsonl"
    path.write_bytes(path.read_bytes() + b"damage\nmore\n")
    source = RecordingSource(path, clock=clock)
    assert ask(source, "a") == {"a": waiting(1)}
    clock.now += 1000

    assert f"{path}, line 3: a JSON object is expected" in ask(source, "a")["a"].reason


def test_a_recording_without_a_tick_is_refused(play) -> None:
    with pytest.raises(RecordingError, match="holds no tick"):
        play()
