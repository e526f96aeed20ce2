"""What all tests share: those that need a real control plane are skipped in one line where Go is missing."""

from __future__ import annotations

import os

import pytest

from tests.cluster import toolchain


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test marked ``toolchain`` is skipped where nothing can be built; with CI=true it fails instead."""
    if item.get_closest_marker("toolchain") is None:
        return
    if (reason := toolchain.missing()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
