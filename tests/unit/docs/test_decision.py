"""The page that reads a decision shows one that the product makes: its steps, and the words around them."""

from __future__ import annotations

import re

from scaler.policy.steps import LIMITING, SHAPING, signals
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "decision.md")
STEPS = [step.__name__ for step in (signals, *SHAPING, *LIMITING)]


def test_every_step_is_told_in_its_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.text, re.MULTILINE)
    assert rows == STEPS


def test_the_steps_of_the_decisions_shown_exist() -> None:
    shown = re.findall(r"^ {4}(\w+) +→ ", "".join(PAGE.written_in("text")), re.MULTILINE)
    assert len(shown) >= 5
    assert set(shown) <= set(STEPS)
