"""A scaler with one target, and a visitor who looks at its page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from scaler.serving.host import Host
from scaler.targets import Target, Targets, World
from tests.browser.chromium import chromium
from tests.browser.visitor import Visitor, visiting
from tests.protocol.world import NAME, NAMESPACE, PATIENCE_S, POLICY, Fleet, hosted


@pytest.fixture
def fleet() -> Fleet:
    return Fleet(ready=3, starting=1, waiting=30, running=12)


@pytest.fixture
def targets(fleet: Fleet) -> Targets:
    return Targets(World(fleet, fleet))


@pytest.fixture
async def target(targets: Targets, host: Host) -> Target:
    target = targets.find(NAMESPACE, NAME, POLICY)
    await target.first_decision(PATIENCE_S)
    return target


@pytest.fixture
async def host(fleet: Fleet, targets: Targets) -> AsyncIterator[Host]:
    async with hosted(fleet, targets=targets) as host:
        yield host


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture
async def visitor(browser: Browser, host: Host, target: Target) -> AsyncIterator[Visitor]:
    async with visiting(browser, host) as visitor:
        yield visitor
