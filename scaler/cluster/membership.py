"""Which pods belong to which selector, kept up change by change: asking costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from scaler.cluster.model import Pod
from scaler.cluster.pods import LabelledPod
from scaler.cluster.reflector import Key
from scaler.cluster.selector import Selector

K = TypeVar("K", bound=Hashable)
_Label = tuple[str, str, str]
"""Namespace, key and value."""


@dataclass(slots=True)
class _Follower:
    namespace: str
    selector: Selector
    anchor: _Label | None
    """A label that all its pods have; without one every pod of the namespace must be looked at."""
    members: dict[str, Pod] = field(default_factory=dict)
    pods: tuple[Pod, ...] | None = None


class Membership(Generic[K]):
    """Pods by label, and followers whose selectors are looked up by label too.

    A changed pod costs as much as it has labels; a new selector costs as much as its rarest label has pods.
    `on_change` is told of each follower whose pods have changed.
    """

    def __init__(self, on_change: Callable[[K], None]) -> None:
        self._on_change = on_change
        self._pods: dict[str, dict[str, LabelledPod]] = {}
        self._by_label: dict[_Label, set[str]] = {}
        self._followers: dict[K, _Follower] = {}
        self._anchored: dict[_Label, set[K]] = {}
        self._unanchored: dict[str, set[K]] = {}

    def pods(self, follower: K) -> tuple[Pod, ...]:
        """Return the pods of a follower, in the order of their names; none for one that is not known."""
        found = self._followers.get(follower)
        if found is None:
            return ()
        if found.pods is None:
            found.pods = tuple(pod for _, pod in sorted(found.members.items()))
        return found.pods

    def follow(self, follower: K, namespace: str, selector: Selector) -> None:
        """Keep up the pods of `selector` for a follower, in place of what it followed before."""
        known = self._followers.get(follower)
        if known is not None and (known.namespace, known.selector) == (namespace, selector):
            return
        self.unfollow(follower)
        labels = [(namespace, key, value) for key, value in selector.pairs]
        anchor = min(labels, key=lambda label: len(self._by_label.get(label, ())), default=None)
        self._followers[follower] = entry = _Follower(namespace, selector, anchor)
        if anchor is None:
            self._unanchored.setdefault(namespace, set()).add(follower)
        else:
            self._anchored.setdefault(anchor, set()).add(follower)
        here = self._pods.get(namespace, {})
        for name in here if anchor is None else self._by_label.get(anchor, ()):
            if selector.matches(here[name].labels):
                entry.members[name] = here[name].pod
        self._on_change(follower)

    def unfollow(self, follower: K) -> None:
        """Stop keeping up a follower's pods."""
        entry = self._followers.pop(follower, None)
        if entry is None:
            return
        if entry.anchor is None:
            _discard(self._unanchored, entry.namespace, follower)
        else:
            _discard(self._anchored, entry.anchor, follower)
        self._on_change(follower)

    def update(self, key: Key, before: LabelledPod | None, after: LabelledPod | None) -> None:
        """Take in a change: a pod that came (no `before`), went (no `after`) or became another."""
        namespace, name = key
        candidates: set[K] = set()
        if before is not None:
            labels = _labels(namespace, before)
            candidates |= self._candidates(namespace, labels)
            for label in labels:
                _discard(self._by_label, label, name)
            del self._pods[namespace][name]
        if after is not None:
            labels = _labels(namespace, after)
            candidates |= self._candidates(namespace, labels)
            for label in labels:
                self._by_label.setdefault(label, set()).add(name)
            self._pods.setdefault(namespace, {})[name] = after
        for follower in candidates:
            self._refresh(follower, name, after)

    def _candidates(self, namespace: str, labels: Iterable[_Label]) -> set[K]:
        found = set(self._unanchored.get(namespace, ()))
        for label in labels:
            found |= self._anchored.get(label, set())
        return found

    def _refresh(self, follower: K, name: str, after: LabelledPod | None) -> None:
        entry = self._followers[follower]
        if after is not None and entry.selector.matches(after.labels):
            entry.members[name] = after.pod
        elif entry.members.pop(name, None) is None:
            return
        entry.pods = None
        self._on_change(follower)


def _labels(namespace: str, pod: LabelledPod) -> list[_Label]:
    return [(namespace, key, value) for key, value in pod.labels.items()]


_A = TypeVar("_A", bound=Hashable)
_B = TypeVar("_B", bound=Hashable)


def _discard(index: dict[_A, set[_B]], key: _A, value: _B) -> None:
    """Take `value` out of an index, and the key with it when nothing is left under it."""
    values = index[key]
    values.discard(value)
    if not values:
        del index[key]
