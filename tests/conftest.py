"""What all tests share: those that need more than Python are skipped in one line where it is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests.browser import chromium
from tests.cluster import podman, toolchain
from tests.real_engine import installation

_NEEDS: Mapping[str, Callable[[], str | None]] = {
    "toolchain": toolchain.missing,
    "real_engine": installation.missing,
    "container": podman.missing,
    "browser": chromium.missing,
}
"""Marker → why its tests cannot run on this machine, or None where they can."""


# On a busy machine an example may take long; and CI tries the same examples each time.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "search")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marked test is skipped where this machine lacks what it needs; with CI=true it fails instead."""
    for marker, missing in _NEEDS.items():
        if item.get_closest_marker(marker) and (reason := missing()) is not None:
            if os.environ.get("CI") == "true":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


class OneWorkerForEachWorld(LoadScopeScheduling):
    """Spreads tests one by one, but keeps those that share a control plane or an engine in one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return next((world for world in ("tests/cluster/", "tests/real_engine/") if nodeid.startswith(world)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Give xdist its scheduler."""
    return OneWorkerForEachWorld(config, log)
