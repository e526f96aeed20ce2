"""Words of others within messages: one line, and no longer than a reader needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.quoting import LONGEST, one_line, quoted, shortened

BOMB: list[object] = ["ha"]
for _ in range(60):
    BOMB = [BOMB] * 9


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("ten", "'ten'"),
        ("", "''"),
        ("a\nb", "'a\\nb'"),
        ("x" * 100, f"'{'x' * (LONGEST - 1)}…'"),
        (3, "3"),
        (True, "True"),
        (b"page", "b'page'"),
        (None, "nothing"),
        ({"a": 1}, "a mapping"),
        ([1, 2], "a list"),
        (BOMB, "a list"),
    ],
)
def test_a_value_is_shown_as_it_would_be_written(value: object, shown: str) -> None:
    assert quoted(value) == shown


@pytest.mark.parametrize(
    ("text", "line"), [(" a \r\n\tb ", "a b"), ("a\x00b\u202ec", "a b c"), ("", ""), ("\n" * 1000, "…")]
)
def test_a_line_has_nothing_that_a_terminal_would_act_on(text: str, line: str) -> None:
    assert one_line(text) == line


@given(st.text(max_size=2000))
def test_what_is_shown_never_grows_with_what_was_said(text: str) -> None:
    line = one_line(text)
    assert len(line) <= LONGEST
    assert line.isprintable()
    assert len(shortened(text)) <= LONGEST
    assert quoted(text).isprintable()
    assert len(quoted(text)) <= LONGEST * len("\\U0001f600") + 2
    if len(text) <= LONGEST:
        assert shortened(text) == text
