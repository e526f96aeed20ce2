"""One real engine for all tests here, and what its page said while it did its first work."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.real_engine import record_pages
from tests.real_engine.engine import RealEngine
from tests.real_engine.record_pages import Pages


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def recorded() -> AsyncIterator[tuple[RealEngine, Pages]]:
    with RealEngine() as engine:
        yield engine, await record_pages.record(engine.url)


@pytest.fixture
def engine(recorded: tuple[RealEngine, Pages]) -> RealEngine:
    """Up and idle. A test may kill it: the next one finds it started anew."""
    engine, _ = recorded
    if not engine.alive:
        engine.stop()
        engine.start()
    return engine


@pytest.fixture
def pages(recorded: tuple[RealEngine, Pages]) -> Pages:
    return recorded[1]
