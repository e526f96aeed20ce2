"""One watch for each resource and namespace in use, shared by all who need it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from scaler.cluster.reflector import Reflector

T = TypeVar("T")

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs a coroutine beside all others until it is cancelled."""


class Watches(Generic[T]):
    """Reflectors of one resource: one for each namespace that somebody uses, or one for all namespaces."""

    def __init__(self, make: Callable[[str], Reflector[T]], spawn: Spawn, *, cluster_wide: bool) -> None:
        self._make = make
        self._spawn = spawn
        self._cluster_wide = cluster_wide
        self._users: Counter[str] = Counter()
        self._running: dict[str, tuple[Reflector[T], asyncio.Task[None]]] = {}

    def __getitem__(self, namespace: str) -> Reflector[T]:
        """The reflector that shows a namespace in use. Raises KeyError for any other."""
        return self._running[self._scope(namespace)][0]

    def acquire(self, namespace: str) -> None:
        """Begin to use a namespace: its reflector runs until everybody has released it."""
        scope = self._scope(namespace)
        self._users[scope] += 1
        if scope not in self._running:
            reflector = self._make(scope)
            self._running[scope] = reflector, self._spawn(reflector.run())

    def release(self, namespace: str) -> None:
        """Say that one user less needs a namespace; after the last one its objects are forgotten."""
        scope = self._scope(namespace)
        self._users[scope] -= 1
        if self._users[scope] == 0:
            del self._users[scope]
            reflector, task = self._running.pop(scope)
            task.cancel()
            reflector.clear()
            reflector.settled.set()  # nobody shall go on waiting for it

    def _scope(self, namespace: str) -> str:
        return "" if self._cluster_wide else namespace
