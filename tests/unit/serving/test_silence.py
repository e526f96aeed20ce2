"""When a KEDA that does not ask is spoken of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scaler.cluster.model import ScaledObject
from scaler.serving.silence import Silence
from scaler.targets import Target
from tests.unit.targets.world import SIMPLE, Scene, scaled_object

SHOWN = scaled_object(SIMPLE)
"""KEDA polls it every 30 s, so it may be silent for 90 s."""


@dataclass
class Ear:
    """A scaler that listens for KEDA's questions about one ScaledObject, and may lead or not."""

    leads: bool = True

    def __post_init__(self) -> None:
        self.scene = Scene()
        self.targets = self.scene.targets()
        self.silence = Silence(self.targets, lambda: self.leads)
        self.show(SHOWN)
        self.silence.look()

    def show(self, shown: ScaledObject) -> None:
        self.targets.show([shown])
        self.silence.show([shown])

    def keda_asks(self) -> Target:
        return self.targets.find("ns", "llama", SIMPLE)

    def hears_after(self, seconds: int) -> str:
        """The warning after so many seconds, in which it looked every five."""
        for _ in range(0, seconds, 5):
            self.scene.clock.now += 5
            self.silence.look()
        (target,) = self.targets
        assert target.warnings == ((target.unasked,) if target.unasked else ())
        return target.unasked


def test_a_keda_that_never_asks_is_spoken_of_with_what_to_look_at() -> None:
    ear = Ear()
    assert ear.hears_after(90) == ""
    told = ear.hears_after(10)
    assert told.startswith("KEDA has never asked for this trigger since 22:30:00 UTC: ")
    assert "TLS" in told
    assert ear.hears_after(600) == told


def test_a_keda_that_stops_asking_is_spoken_of_until_it_asks_again() -> None:
    ear = Ear()
    ear.keda_asks()
    assert "has not asked" in ear.hears_after(120)
    ear.keda_asks()
    assert ear.hears_after(5) == ""


def test_a_slower_poll_may_be_silent_for_longer() -> None:
    ear = Ear()
    ear.show(replace(SHOWN, polling_s=600.0))
    assert ear.hears_after(650) == ""
    assert ear.hears_after(20)


def test_a_stream_that_stands_is_a_question() -> None:
    ear = Ear()
    with ear.keda_asks().asking.stream():
        assert ear.hears_after(3600) == ""
    assert ear.hears_after(80) == ""
    assert ear.hears_after(20)


def test_of_a_paused_scaled_object_nobody_asks_and_after_the_pause_there_is_time_to_ask_again() -> None:
    ear = Ear()
    ear.show(replace(SHOWN, paused=True))
    assert ear.hears_after(3600) == ""
    ear.show(SHOWN)
    assert ear.hears_after(80) == ""
    assert ear.hears_after(20)


def test_a_standby_is_not_asked_and_a_new_leader_gives_keda_time_to_find_it() -> None:
    ear = Ear(leads=False)
    assert ear.hears_after(3600) == ""
    ear.leads = True
    assert ear.hears_after(80) == ""
    assert ear.hears_after(20)
    ear.leads = False
    assert ear.hears_after(5) == ""


def test_a_target_that_no_scaled_object_names_is_not_spoken_of() -> None:
    ear = Ear()
    ear.silence.show([])
    assert ear.hears_after(3600) == ""
