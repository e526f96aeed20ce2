"""All targets of a server: found by watch or by KEDA's first call, each with its own loop."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass

import structlog

from scaler.cluster.model import Discovery, ScaledObject
from scaler.policy import SettingsError
from scaler.policy.presets import policy_name
from scaler.quoting import one_line, quoted
from scaler.targets.given import given
from scaler.targets.record import Record
from scaler.targets.settings import FROM_ENV, TriggerSettings, parse_trigger, trigger_id
from scaler.targets.target import Target, World

log = structlog.get_logger(__name__)

FORGOTTEN_AFTER_S = 600.0
"""How long a target that only RPCs named is kept without one; KEDA asks at least every few minutes."""
SUPERSEDED_AFTER_S = 45.0
"""The same for a trigger that the watch shows otherwise: KEDA may call once more with what it was, but not for long.
Longer than its usual polling interval, as the watch may be behind KEDA instead."""

_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""What Kubernetes lets a ScaledObject be called; a namespace has even less room."""

Named = Mapping[str, Mapping[str, str]]
EndpointDiscovery = Callable[[TriggerSettings], Discovery]
"""Makes the discovery of a trigger with `endpoints`. Raises SettingsError where the operator does not allow it."""


@dataclass(frozen=True, slots=True)
class _Key:
    namespace: str
    name: str
    trigger: str

    @property
    def scaled_object(self) -> tuple[str, str]:
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Invalid:
    """A trigger that is not served, and what is wrong with it."""

    namespace: str
    name: str
    trigger: str
    error: str


class Targets:
    """The targets by ScaledObject and trigger. Nothing here waits but `run`."""

    def __init__(self, world: World, policies: Named | None = None, endpoints: EndpointDiscovery | None = None) -> None:
        self.world = world
        self._policies = policies or {}
        self._endpoints = endpoints
        self._targets: dict[_Key, Target] = {}
        self._errors: dict[_Key, SettingsError] = {}
        self._watched: dict[tuple[str, str], set[str]] = {}
        """Triggers of the ScaledObjects that the watch shows."""
        self._loops: dict[Target, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def __iter__(self) -> Iterator[Target]:
        return iter(sorted(self._targets.values(), key=lambda target: (target.namespace, target.name, target.trigger)))

    def __len__(self) -> int:
        return len(self._targets)

    def find(self, namespace: str, name: str, metadata: Mapping[str, str]) -> Target:
        """Return the target that KEDA names, and begin it when it is new.

        Metadata that are invalid get the target that ran before them, with a warning. Raises SettingsError when
        there was none.
        """
        key = _Key(namespace, name, trigger_id(metadata))
        target = self._targets.get(key)
        if target is None:
            target = self._begin(key, metadata)
        else:
            target.invalid = ""
        target.asking.note()
        return target

    def refusal(self, namespace: str, name: str, metadata: Mapping[str, str]) -> SettingsError | None:
        """Why KEDA is refused a trigger that the watch has shown; None where a target answers for it."""
        key = _Key(namespace, name, trigger_id(metadata))
        return self._errors.get(key) if self._predecessor(key) is None else None

    def get(self, namespace: str, name: str, trigger: str = "") -> Target:
        """Return a target by name. Raises LookupError that says which there are.

        Of several that no watch shows, as in a dry run that tries one value after the other, it is the last asked for.
        One that the watch no longer shows answers to the name of its trigger alone.
        """
        of_name = [t for t in self if (t.namespace, t.name) == (namespace, name)]
        if not trigger:
            of_name = [t for t in of_name if not self.is_superseded(t)] or of_name
        if of_name and not trigger and (namespace, name) not in self._watched:
            return max(of_name, key=lambda target: target.asking.last)
        found = [t for t in of_name if trigger in ("", t.trigger)]
        if len(found) == 1:
            return found[0]
        if of_name:
            triggers = ", ".join(t.trigger for t in of_name)
            raise LookupError(f"{namespace}/{name} has the triggers {triggers}: name one of them")
        for key, error in self._errors.items():
            if key.scaled_object == (namespace, name):
                raise LookupError(f"{namespace}/{name} is not served, its trigger is invalid: {error}")
        known = ", ".join(str(t) for t in list(self)[:10]) or "none yet"
        raise LookupError(f"no target {one_line(namespace)}/{one_line(name)}; known are {known}")

    def is_superseded(self, target: Target) -> bool:
        """Whether the watch shows its ScaledObject with other triggers: it goes on for a while, if KEDA still asks."""
        key = _Key(target.namespace, target.name, target.trigger)
        watched = self._watched.get(key.scaled_object)
        return watched is not None and target.trigger not in watched and not target.invalid

    def deciding(self) -> Iterator[tuple[Target, Record]]:
        """Give the targets whose decisions count, each with its last tick; not those that have decided nothing yet."""
        for target in self:
            if target.latest is not None and not self.is_superseded(target):
                yield target, target.latest

    @property
    def invalid(self) -> tuple[Invalid, ...]:
        """The triggers that are not served because they are wrong, ordered by namespace and name."""
        served = {(target.namespace, target.name) for target in self._targets.values()}
        return tuple(
            Invalid(key.namespace, key.name, key.trigger, str(error))
            for key, error in sorted(self._errors.items(), key=lambda item: astuple(item[0]))
            if key.scaled_object not in served
        )

    def show(self, scaled_objects: Iterable[ScaledObject]) -> None:
        """Take in the ScaledObjects that name this server, all of them: begin what is new, end what is gone."""
        metadata = {
            _Key(scaled_object.namespace, scaled_object.name, trigger_id(trigger.metadata)): trigger.metadata
            for scaled_object in scaled_objects
            for trigger in scaled_object.triggers
            if not any(key.endswith(FROM_ENV) for key in trigger.metadata)  # only KEDA knows the values
        }
        before, self._watched = self._watched, {}
        for key in metadata:
            self._watched.setdefault(key.scaled_object, set()).add(key.trigger)
        for key, values in metadata.items():
            if key in self._targets:
                self._targets[key].invalid = ""
            else:
                with suppress(SettingsError):  # remembered and logged; KEDA's call will be told
                    self._begin(key, values)
        for key in [*self._targets, *self._errors]:
            if key in metadata or key.scaled_object not in before:
                continue
            self._errors.pop(key, None)
            if (target := self._targets.get(key)) is not None and not (target.asking.streams or self._stands_in(key)):
                self._end(key)

    async def run(self) -> None:
        """Run every target's loop until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for target in list(self._targets.values()):
                self._start(target)
            while True:
                await self.world.clock.sleep(SUPERSEDED_AFTER_S / 5)
                self._forget()

    def _begin(self, key: _Key, metadata: Mapping[str, str]) -> Target:
        _check_names(key)
        predecessor = self._predecessor(key)
        try:
            settings = parse_trigger(metadata, self._policies)
            discovery = self._discovery(settings)
        except SettingsError as error:
            if key not in self._errors:
                log.error("invalid trigger", target=f"{key.namespace}/{key.name}", problems=list(error.problems))
            self._errors[key] = error
            if predecessor is None:
                raise
            predecessor.invalid = f"the trigger's new metadata are invalid, the last valid ones stay in force: {error}"
            return predecessor
        name, origins = policy_name(metadata), given(metadata, self._policies)
        target = Target(key.namespace, key.name, key.trigger, name, settings, self.world, discovery, origins)
        if predecessor is not None:
            target.succeed(predecessor)
            predecessor.invalid = ""
        self._targets[key] = target
        self._start(target)
        log.info("target begins", target=str(target), trigger=key.trigger, policy=target.policy_name)
        return target

    def _discovery(self, settings: TriggerSettings) -> Discovery | None:
        if settings.endpoints is None:
            return None
        if self._endpoints is None:
            raise SettingsError(
                [
                    f"endpoints: {quoted(settings.endpoints)} is wrong (this server was started without "
                    "--allow-endpoints); leave it out, or have its network allowed"
                ]
            )
        return self._endpoints(settings)

    def _predecessor(self, key: _Key) -> Target | None:
        """Return the target that served this ScaledObject last, unless its own trigger still stands beside."""
        shown = self._watched.get(key.scaled_object, set())
        siblings = shown if key.trigger in shown else set()  # else the watch is behind KEDA, and tells nothing
        candidates = (
            target
            for k, target in self._targets.items()
            if k.scaled_object == key.scaled_object and k.trigger not in siblings
        )
        return max(candidates, key=lambda target: target.asking.last, default=None)

    def _stands_in(self, key: _Key) -> bool:
        """Whether a target goes on since what the watch shows in its place is invalid."""
        return bool(self._targets[key].invalid) and key.scaled_object in self._watched

    def _start(self, target: Target) -> None:
        if self._group is not None:
            phase = zlib.crc32(f"{target}/{target.trigger}".encode()) / 2**32
            self._loops[target] = self._group.create_task(target.run(phase))

    def _end(self, key: _Key) -> None:
        target = self._targets.pop(key)
        if task := self._loops.pop(target, None):
            task.cancel()
        log.info("target ends", target=str(target), trigger=key.trigger)

    def _forget(self) -> None:
        now = self.world.clock.monotonic()
        for key, target in list(self._targets.items()):
            watched = self._watched.get(key.scaled_object)
            kept_s = FORGOTTEN_AFTER_S if watched is None else SUPERSEDED_AFTER_S
            silent = now - target.asking.last > kept_s
            if silent and key.trigger not in (watched or ()) and not self._stands_in(key):
                self._end(key)
        for key in list(self._errors):
            if key.scaled_object not in self._watched:
                del self._errors[key]


def _check_names(key: _Key) -> None:
    """Raise SettingsError for what cannot be an object's name: names are kept, logged and shown as labels."""
    right = "wrong (no name that Kubernetes allows); right are up to 253 of a-z, 0-9, - and ."
    names = {"namespace": key.namespace, "name": key.name}
    problems = [f"{what}: {quoted(name)} is {right}" for what, name in names.items() if not _NAME.fullmatch(name)]
    if problems:
        raise SettingsError(problems)
