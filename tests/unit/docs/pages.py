"""The repository's Markdown, taken apart: headings, links, and blocks of code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"^( *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    language: str
    text: str


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return [Block(each["language"], each["text"]) for each in FENCE.finditer(self.text)]

    @cached_property
    def prose(self) -> str:
        """The page without its blocks of code and its inline code."""
        return re.sub(r"`[^`\n]*`", "code", FENCE.sub("", self.text))

    @property
    def headings(self) -> list[tuple[int, str]]:
        """Level and words of each heading."""
        found = re.finditer(r"^(#+) (.+)$", FENCE.sub("", self.text), re.MULTILINE)
        return [(len(each[1]), each[2]) for each in found]

    @property
    def anchors(self) -> set[str]:
        """What a link may name after #, as GitHub and the site make it of headings."""
        return {re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") for _, words in self.headings}

    @property
    def links(self) -> list[str]:
        """Where links and pictures lead, those to other sites left out."""
        return [each for each in LINK.findall(self.prose) if not re.match(r"[a-z]+:", each)]

    def written_in(self, *languages: str) -> list[str]:
        """The text of all blocks in these languages."""
        return [block.text for block in self.blocks if block.language in languages]


def pages() -> list[Page]:
    """README and CONTRIBUTING, all of docs/ and of k8s/."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "k8s").rglob("*.md")]
    return [Page(path) for path in sorted(found)]


def commands(script: str) -> Iterator[list[str]]:
    """Every simple command of a shell script as its words, without variables set before it; no here-documents."""
    script = re.sub(r"<<'?(\w+)'?([^\n]*)\n.*?^\1$", r"\2", script, flags=re.MULTILINE | re.DOTALL)
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.commenters = "#"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|&;"):
                while words and re.match(r"\w+=", words[0]):
                    del words[0]
                if words:
                    yield words
                words = []
            else:
                words.append(word)
