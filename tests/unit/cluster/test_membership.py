from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scaler.cluster.membership import Membership
from scaler.cluster.model import Phase, Pod
from scaler.cluster.pods import LabelledPod
from scaler.cluster.selector import Selector, parse_selector

SELECTORS = [parse_selector(t) for t in ("app=a", "app=b,tier=x", "app in (a,b)", "!tier", "app=a,tier!=x", "tier")]
LABELS = st.dictionaries(st.sampled_from(["app", "tier", "zone"]), st.sampled_from(["a", "b", "x"]), max_size=3)
NAMESPACES = st.sampled_from(["one", "two"])
POD_NAMES = st.sampled_from([f"pod-{i}" for i in range(4)])


def labelled(name: str, labels: dict[str, str], since: float = 0.0) -> LabelledPod:
    return LabelledPod(Pod(name=name, uid=name, phase=Phase.READY, since=since, created=0.0), labels)


class World:
    """A membership beside the plain truth: all pods, and who follows what."""

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.membership: Membership[str] = Membership(self.changed.append)
        self.pods: dict[tuple[str, str], LabelledPod] = {}
        self.followers: dict[str, tuple[str, Selector]] = {}

    def set_pod(self, namespace: str, name: str, after: LabelledPod | None) -> None:
        key = namespace, name
        before = self.pods.pop(key, None)
        if after is not None:
            self.pods[key] = after
        self.membership.update(key, before, after)

    def follow(self, follower: str, namespace: str, selector: Selector | None) -> None:
        if selector is None:
            self.followers.pop(follower, None)
            self.membership.unfollow(follower)
        else:
            self.followers[follower] = namespace, selector
            self.membership.follow(follower, namespace, selector)

    def truth(self, follower: str) -> list[Pod]:
        namespace, selector = self.followers[follower]
        found = [
            pod.pod for (place, _), pod in self.pods.items() if place == namespace and selector.matches(pod.labels)
        ]
        return sorted(found, key=lambda pod: pod.name)


POD_CHANGES = st.tuples(NAMESPACES, POD_NAMES, st.none() | LABELS, st.integers(0, 3))
FOLLOWS = st.tuples(st.sampled_from(["f", "g", "h"]), NAMESPACES, st.none() | st.sampled_from(SELECTORS))


@given(st.lists(st.one_of(POD_CHANGES, FOLLOWS), max_size=40))
def test_membership_is_what_matching_every_pod_anew_would_find(
    changes: list[tuple[str, str, dict[str, str] | None, int] | tuple[str, str, Selector | None]],
) -> None:
    world = World()
    for change in changes:
        if len(change) == 4:
            namespace, name, labels, since = change
            world.set_pod(namespace, name, None if labels is None else labelled(name, labels, since))
        else:
            world.follow(*change)
        for follower in world.followers:
            assert list(world.membership.pods(follower)) == world.truth(follower)


def test_follower_is_told_when_its_pods_change_and_only_then() -> None:
    world = World()
    world.follow("f", "one", parse_selector("app=a"))
    world.changed.clear()
    world.set_pod("one", "p", labelled("p", {"app": "a"}))
    world.set_pod("one", "q", labelled("q", {"app": "b"}))
    world.set_pod("two", "r", labelled("r", {"app": "a"}))
    assert world.changed == ["f"]
    world.set_pod("one", "p", labelled("p", {"app": "b"}))
    assert world.changed == ["f", "f"]
    assert world.membership.pods("f") == ()


def test_unknown_follower_has_no_pods() -> None:
    assert World().membership.pods("nobody") == ()
