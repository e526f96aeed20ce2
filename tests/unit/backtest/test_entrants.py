"""Contenders by what a person writes."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from inference.simulated import MEMORY_BOUND
from scaler.backtest.contender import Setup
from scaler.backtest.entrants import entrant, rival_settings, rivals, settings
from scaler.backtest.ours import Ours
from scaler.backtest.rivals import RIVALS
from scaler.policy import SettingsError

SETUP = Setup(1, 8, 60.0, MEMORY_BOUND, 3.0, 0.1, [])


@pytest.mark.parametrize("text", ["adaptive", "ray-serve,targetOngoingRequests=20", "static-6", *rivals()])
def test_a_contender_goes_by_the_name_that_it_was_asked_for_by(text: str) -> None:
    assert entrant(text).name == text
    assert entrant(text).maker(SETUP).name.removeprefix("rival:") == text.removeprefix("rival:")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("knative,target=12", {"target": 12.0}),
        ("rival:ray-serve, downscale_delay_s = 120, target_ongoing_requests=8", {"downscale_delay_s": 120.0}),
        ("llm-d-queue,guard=true", {"guard": True}),
        ("dynamo-latency,up=0.5", {"up": 0.5, "down": 0.1}),
    ],
)
def test_a_rival_takes_its_own_settings_and_keeps_the_others(text: str, changed: dict[str, object]) -> None:
    contender = entrant(text).maker(SETUP)
    name = text.split(",", maxsplit=1)[0].removeprefix("rival:")
    now, before = asdict(contender.settings), asdict(rival_settings(name))  # type: ignore[attr-defined]
    assert changed.items() <= now.items()
    assert now.keys() == before.keys()
    assert contender.name == text


@pytest.mark.parametrize("name", RIVALS)
def test_every_rivals_settings_are_known_or_it_has_none(name: str) -> None:
    assert rival_settings(name) is None or asdict(rival_settings(name))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("knativ", "did you mean knative"),
        ("knative,targt=12", "no setting targt; right is target, stable_window_s"),
        ("knative,target=many", "target is 'many'; right is a number"),
        ("llm-d-queue,guard=maybe", "guard is 'maybe'; right is true or false"),
        ("knative,target", "'target' is wrong; right is, for instance, target=12"),
        ("ray-serve-tuned,target=1", "ray-serve-tuned has none"),
        ("adaptive,headroom", "'headroom' is wrong; right is, for instance, headroom=10%"),
    ],
)
def test_a_mistake_is_told_with_what_would_be_right(text: str, told: str) -> None:
    with pytest.raises(SettingsError) as error:
        entrant(text)
    assert told in "\n".join(error.value.problems)


def test_a_preset_takes_metadata() -> None:
    assert settings("ray-serve,targetOngoingRequests=20").target_ongoing_requests == 20


def objectives(text: str, policies: dict[str, dict[str, str]] | None = None) -> tuple[float | None, float | None]:
    """What our contender goes by in a plant that promises 2 s and 50 ms."""
    setup = replace(SETUP, ttft_slo_s=2.0, tpot_slo_s=0.05)
    contender = entrant(text, policies).maker(setup)
    assert isinstance(contender, Ours)
    return contender.settings.ttft_slo_s, contender.settings.itl_slo_s


def test_a_policy_that_works_with_objectives_is_told_what_the_plant_promises_unless_a_person_said_otherwise() -> None:
    assert objectives("adaptive") == (2.0, 0.05)
    assert objectives("adaptive,itlSlo=80ms") == (2.0, 0.08)
    assert objectives("chat", {"chat": {"policy": "adaptive", "ttftSlo": "1s"}}) == (1.0, 0.05)
    assert objectives("ray-serve") == (None, None)
