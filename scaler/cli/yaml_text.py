"""YAML as people wrote it: keys that stand there twice, and scalars before YAML makes something else of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

FAULTS = (yaml.YAMLError, ValueError, RecursionError)
"""What reading YAML raises; ValueError is no UTF-8, or a date such as 2026-99-99."""

FAST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class TextLoader(yaml.SafeLoader):
    """Keeps every scalar as the text that was written: `010`, `10:30` and `off` stay what they are."""


TextLoader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0].endswith((":merge", ":null"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that stands twice in one mapping. Readers take the last, the first, or neither."""

    key: str
    line: int
    """Of the second, counted from 1."""
    first: int


def repeated_keys(root: yaml.Node) -> Iterator[Repeated]:
    """Find them all, at any depth, before any of the document is constructed."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            waiting.extend(value for _, value in node.value)
            lines: dict[str, int] = {}
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                line = key.start_mark.line + 1
                if key.value in lines:
                    yield Repeated(key.value, line, lines[key.value])
                lines[key.value] = line


def fault(error: Exception) -> tuple[str, int]:
    """What is wrong with a text that is no YAML, in one line, and the line where."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return " ".join(what.split()), mark.line + 1 if mark else 1
