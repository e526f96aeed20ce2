"""An API server to fail on demand, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scaler.cluster.client import ApiClient
from tests.unit.cluster.fake_api import FakeApi


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[FakeApi]:
    async with FakeApi(tmp_path) as api:
        yield api


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[ApiClient]:
    async with await ApiClient.connect(api.kubeconfig) as client:
        yield client
