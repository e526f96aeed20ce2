from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.cluster.selector import Operator, Requirement, Selector, parse_selector, selector_of

LABELS = {"app": "llama", "tier": "gpu", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("app=llama", True),
        ("app==llama", True),
        ("app = llama , tier = gpu", True),
        ("app=llama,tier=cpu", False),
        ("app!=qwen", True),
        ("app!=llama", False),
        ("absent!=x", True),
        ("app in (qwen, llama)", True),
        ("app in (qwen)", False),
        ("tier notin (cpu,tpu),app", True),
        ("absent notin (x)", True),
        ("app", True),
        ("absent", False),
        ("!absent", True),
        ("!app", False),
        ("empty=", True),
        ("leaderworkerset.sigs.k8s.io/worker-index=0", False),
        ("in=x", False),
        ("", True),
    ],
)
def test_selector_text_matches_as_kubernetes_does(text: str, matches: bool) -> None:
    assert parse_selector(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "app", "operator": "In", "values": ["llama"]}, True),
        ({"key": "app", "operator": "NotIn", "values": ["llama"]}, False),
        ({"key": "absent", "operator": "NotIn", "values": ["x"]}, True),
        ({"key": "tier", "operator": "Exists"}, True),
        ({"key": "tier", "operator": "DoesNotExist"}, False),
    ],
)
def test_match_expressions_are_joined_with_match_labels(expression: dict[str, object], matches: bool) -> None:
    assert selector_of({"matchExpressions": [expression]}).matches(LABELS) is matches
    assert selector_of({"matchLabels": {"app": "llama"}, "matchExpressions": [expression]}).matches(LABELS) is matches
    assert not selector_of({"matchLabels": {"app": "no"}, "matchExpressions": [expression]}).matches(LABELS)


@pytest.mark.parametrize("text", ["app=(a)", "app in llama", ",", "a=b c=d", "a in (x"])
def test_text_that_is_no_selector_is_refused_where_it_goes_wrong(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be read from"):
        parse_selector(text)


def test_only_what_every_selected_object_has_is_looked_up() -> None:
    selector = parse_selector("app=llama,tier in (gpu),zone in (a,b),x!=y,z")
    assert selector.pairs == (("app", "llama"), ("tier", "gpu"))


NAMES = st.sampled_from(["app", "tier", "example.com/role", "in", "notin", "x-y_z.1"])
VALUES = st.frozensets(st.sampled_from(["a", "b-1", "c.d", ""]), min_size=1)


def _text(requirement: Requirement) -> str:
    values = f"({','.join(sorted(requirement.values))})"
    return {
        Operator.IN: f"{requirement.key} in {values}",
        Operator.NOT_IN: f"{requirement.key} notin {values}",
        Operator.EXISTS: requirement.key,
        Operator.DOES_NOT_EXIST: f"!{requirement.key}",
    }[requirement.operator]


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(Operator))
    takes_values = operator in {Operator.IN, Operator.NOT_IN}
    return Requirement(draw(NAMES), operator, draw(VALUES) if takes_values else frozenset())


@given(st.lists(requirements(), max_size=4))
def test_written_selector_reads_back_the_same(chosen: list[Requirement]) -> None:
    assert parse_selector(",".join(map(_text, chosen))) == Selector(tuple(chosen))
