"""One watch for each resource and namespace in use, shared by all who need it; one for all where they are many."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from scaler.cluster.reflector import Reflector

T = TypeVar("T")

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs a coroutine beside all others until it is cancelled."""

NARROW = 10
"""Namespaces that are watched one by one. Every watch holds a TLS connection of about 0.3 MB, so many of them cost
more than the objects of a whole cluster."""


class Watches(Generic[T]):
    """Reflectors of one resource: one for each namespace that somebody uses.

    Where it `may_widen`, one reflector of all namespaces takes their place, for good, when they become more than
    `NARROW`; until it has listed everything nothing is known.
    """

    def __init__(self, make: Callable[[str], Reflector[T]], spawn: Spawn, *, may_widen: bool) -> None:
        self._make = make
        self._spawn = spawn
        self._may_widen = may_widen
        self._wide = False
        self._users: Counter[str] = Counter()
        self._running: dict[str, tuple[Reflector[T], asyncio.Task[None]]] = {}

    def __getitem__(self, namespace: str) -> Reflector[T]:
        """The reflector that shows a namespace in use. Raises KeyError for any other."""
        return self._running["" if self._wide else namespace][0]

    def acquire(self, namespace: str) -> None:
        """Begin to use a namespace: it is watched until everybody has released it."""
        self._users[namespace] += 1
        widens = self._may_widen and not self._wide and len(self._users) > NARROW
        narrow = list(self._running) if widens else []
        self._wide |= widens
        scope = "" if self._wide else namespace
        if scope not in self._running:
            reflector = self._make(scope)
            self._running[scope] = reflector, self._spawn(reflector.run())
        for scope in narrow:
            self._stop(scope)

    def release(self, namespace: str) -> None:
        """Say that one user less needs a namespace; after the last one its objects are forgotten."""
        self._users[namespace] -= 1
        if self._users[namespace] == 0:
            del self._users[namespace]
            if not self._wide:
                self._stop(namespace)
            elif not self._users:
                self._stop("")

    def _stop(self, scope: str) -> None:
        reflector, task = self._running.pop(scope)
        task.cancel()
        reflector.clear()
        reflector.settled.set()  # nobody shall go on waiting for it
