"""Which requests a replica runs: in turn, within a limit that follows latency, with room for short ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from inference.admission import AdaptiveLimit, Admission, RequestClass, class_of
from inference.settings import GateSettings

LONG, SHORT = RequestClass.LONG, RequestClass.SHORT


def settings(**values: object) -> GateSettings:
    return GateSettings.model_validate(values)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, SHORT),
        ({b"content-length": b"7999"}, SHORT),
        ({b"content-length": b"8000"}, LONG),
        ({b"content-length": b"many"}, SHORT),
        ({b"content-length": b"9" * 5000}, LONG),
        ({b"content-length": b"0" * 5000 + b"1"}, SHORT),
        ({b"content-length": b""}, SHORT),
        ({b"x-request-class": b"\xff" * 1_000_000}, SHORT),
        ({b"content-length": b"8000", b"x-request-class": b"short"}, SHORT),
        ({b"x-request-class": b" Long "}, LONG),
        ({b"content-length": b"8000", b"x-request-class": b"urgent"}, LONG),
    ],
)
def test_a_requests_class_is_its_headers_else_its_sizes(headers: dict[bytes, bytes], expected: RequestClass) -> None:
    assert class_of(headers, long_from=2000) is expected


def test_requests_begin_in_turn_as_far_as_the_limit_goes() -> None:
    queue: Admission[str] = Admission(settings(maxNumSeqs=2))
    for name in "abcd":
        queue.enter(SHORT, name)
    assert queue.admit(0.0) == ["a", "b"]
    assert (queue.waiting, queue.running) == (2, 2)
    queue.withdraw(SHORT, "c")
    queue.leave(SHORT)
    assert queue.admit(0.0) == ["d"]


def test_long_requests_leave_room_for_short_ones_as_long_as_there_are_any() -> None:
    queue: Admission[str] = Admission(settings(maxNumSeqs=4, longShare=0.5))
    for name in ("l1", "l2", "l3", "l4"):
        queue.enter(LONG, name)
    queue.enter(SHORT, "s1")
    assert queue.admit(0.0) == ["l1", "l2", "s1"]
    queue.leave(SHORT)
    assert queue.admit(0.0) == ["l3", "l4"]


@given(some.lists(some.sampled_from(["enter short", "enter long", "leave", "admit"]), max_size=80))
def test_nothing_is_lost_and_the_limit_is_kept(acts: list[str]) -> None:
    queue: Admission[int] = Admission(settings(maxNumSeqs=8, longShare=0.25))
    kinds: dict[int, RequestClass] = {}
    begun: list[int] = []
    for number, act in enumerate(acts):
        match act.split():
            case ["enter", kind]:
                kinds[number] = RequestClass(kind)
                queue.enter(kinds[number], number)
            case ["leave"] if begun:
                queue.leave(kinds[begun.pop(0)])
            case ["admit"]:
                begun += queue.admit(float(number))
        assert queue.running == len(begun) <= 8
    while queue.waiting:
        for number in begun:
            queue.leave(kinds[number])
        begun = queue.admit(float(len(acts)))
        assert begun


class Seconds:
    """A limit in a world where each request takes so long, second by second."""

    def __init__(self, limit: AdaptiveLimit) -> None:
        self.limit = limit
        self.time = 0.0

    def run(self, seconds: int, *, first_s: float, token_s: float, running: int | None = None) -> int:
        for _ in range(seconds):
            self.time += 1
            self.limit.first_token(self.time, first_s)
            self.limit.finished(self.time, token_s)
            self.limit.adapt(self.time, self.limit.value if running is None else running)
        return self.limit.value


def test_the_limit_falls_while_an_objective_is_missed_and_grows_back_when_none_is_near() -> None:
    world = Seconds(AdaptiveLimit(settings(maxNumSeqs=64)))
    assert world.run(30, first_s=0.1, token_s=0.05) == 64
    low = world.run(15, first_s=0.1, token_s=0.15)
    assert 32 <= low < 64
    assert world.run(300, first_s=0.1, token_s=0.15) == 8
    assert world.run(30, first_s=0.1, token_s=0.09) == 8  # near enough
    assert world.run(300, first_s=0.1, token_s=0.05) == 64


def test_first_tokens_that_take_long_in_the_engine_lower_it_too() -> None:
    world = Seconds(AdaptiveLimit(settings(ttftSlo="3s")))
    assert world.run(60, first_s=0.9, token_s=0.01) == 256
    assert world.run(60, first_s=2.0, token_s=0.01) < 128


def test_a_limit_that_is_not_reached_does_not_grow() -> None:
    world = Seconds(AdaptiveLimit(settings(maxNumSeqs=64)))
    assert world.run(15, first_s=0.1, token_s=0.2, running=30) < 30
    low = world.run(30, first_s=0.1, token_s=0.01, running=5)
    assert world.run(300, first_s=0.1, token_s=0.01, running=5) == low
