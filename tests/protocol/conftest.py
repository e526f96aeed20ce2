"""The scaler as others meet it: a fleet, the server that looks after it, and KEDA's side of the connection."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest

from scaler.serving.host import Host
from tests.protocol.world import Fleet, Keda, hosted


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.fixture
async def host(fleet: Fleet) -> AsyncIterator[Host]:
    async with hosted(fleet) as host:
        yield host


@pytest.fixture
async def channel(host: Host) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(str(host.grpc_address)) as channel:
        yield channel


@pytest.fixture
def keda(channel: grpc.aio.Channel) -> Keda:
    return Keda(channel)
