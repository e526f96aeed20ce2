from __future__ import annotations

import pytest

from scaler.exposition import ENGINES, combining
from scaler.exposition.sample import Reading, Sample
from scaler.sources.holding import Held

HOLDS_S = ENGINES["ray"].holds_s


def page(engine: str = "ray", unknown: dict[str, str] | None = None, **engines: Reading) -> Sample:
    """A page as a dialect reads it: the sum of its engines, and what is unknown beside them."""
    total = combining.total({"": Reading(unknown=unknown or {}), **engines})
    return Sample(
        waiting=total.waiting,
        running=total.running,
        kv_cache_usage=total.kv_cache_usage,
        counters=total.counters,
        unknown=total.unknown,
        engine=engine,
        engines=engines,
    )


NO_QUEUE = {"waiting": "no queue on the page"}


def test_a_gauge_that_went_missing_is_held() -> None:
    held = Held()
    full = page(app=Reading(waiting=5.0, running=2.0))
    held.fill(full, now=100.0)

    sample = held.fill(page(unknown=NO_QUEUE, app=Reading(running=3.0)), now=101.0)

    assert sample == page(app=Reading(waiting=5.0, running=3.0))


def test_a_page_that_shows_nothing_says_what_it_said_before() -> None:
    held = Held()
    full = page(a=Reading(waiting=5.0, running=2.0), b=Reading(waiting=1.0))
    held.fill(full, now=100.0)

    assert held.fill(page(unknown=NO_QUEUE | {"running": "gone"}), now=101.0) == full


def test_one_deployment_that_went_missing_is_still_counted() -> None:
    held = Held()
    held.fill(page(a=Reading(waiting=5.0), b=Reading(waiting=1.0)), now=100.0)

    sample = held.fill(page(b=Reading(waiting=2.0)), now=101.0)

    assert sample.waiting == 7.0


def test_a_gauge_is_held_no_longer_than_its_dialect_says() -> None:
    held = Held()
    held.fill(page(app=Reading(waiting=5.0)), now=100.0)
    gone = page(unknown=NO_QUEUE)

    assert held.fill(gone, now=100.0 + HOLDS_S).waiting == 5.0
    assert held.fill(gone, now=100.1 + HOLDS_S) == gone


def test_holding_does_not_renew_itself() -> None:
    held = Held()
    held.fill(page(app=Reading(waiting=5.0)), now=0.0)
    gone = page(unknown=NO_QUEUE)

    waiting = [held.fill(gone, now=float(second)).waiting for second in range(1, 40)]

    assert waiting == [5.0] * int(HOLDS_S) + [None] * (39 - int(HOLDS_S))


def test_what_never_was_there_stays_unknown() -> None:
    held = Held()
    held.fill(page(unknown=NO_QUEUE, app=Reading(running=2.0)), now=100.0)

    sample = held.fill(page(unknown=NO_QUEUE), now=101.0)

    assert (sample.running, sample.waiting, sample.unknown) == (2.0, None, NO_QUEUE)


def test_counters_are_not_held() -> None:
    held = Held()
    held.fill(page(app=Reading(waiting=5.0, counters={"generation_tokens": 9.0})), now=100.0)

    assert held.fill(page(unknown=NO_QUEUE), now=101.0).counters == {}


@pytest.mark.parametrize("engine", [name for name, dialect in ENGINES.items() if dialect.holds_s == 0])
def test_an_engine_whose_gauges_are_always_there_is_never_held(engine: str) -> None:
    held = Held()
    held.fill(page(engine, app=Reading(waiting=5.0)), now=100.0)
    gone = page(engine, unknown=NO_QUEUE)

    assert held.fill(gone, now=101.0) == gone
