"""Kubernetes manifests as they stand in files: plain values, and the line of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from scaler.cli.linting.finding import Flaw, Place

Step = str | int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of one file."""

    file: str
    node: yaml.Node
    content: dict[str, Any]

    def get(self, *path: Step) -> Any:
        """Return the value at `path`, None where there is none, whatever stands in its way."""
        value: Any = self.content
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def items(self, *path: Step) -> list[Any]:
        """Return the list at `path`, empty where there is none."""
        value = self.get(*path)
        return value if isinstance(value, list) else []

    def place(self, *path: Step) -> Place:
        """Return where `path` stands, or the part of it that exists."""
        node, line = self.node, self.node.start_mark.line
        for step in path:
            if isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == step), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = (node.value[step], node.value[step])
            else:
                found = None
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        return Place(self.file, line + 1)

    @property
    def kind(self) -> str:
        """The object's kind, empty where it has none."""
        return str(self.get("kind") or "")

    @property
    def group(self) -> str:
        """The API group, empty for the core one."""
        group, slash, _version = str(self.get("apiVersion") or "").partition("/")
        return group if slash else ""

    @property
    def name(self) -> str:
        """`metadata.name`"""
        return str(self.get("metadata", "name") or "")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; `default` where the file leaves it to kubectl."""
        return str(self.get("metadata", "namespace") or "default")


def read(file: str, text: str | bytes) -> Iterator[Manifest | Flaw]:
    """Read every object of a file; items of a List one by one. A flaw where the text is no YAML."""
    try:
        loader = yaml.SafeLoader(text)
        while (node := loader.get_node() if loader.check_node() else None) is not None:
            yield from _objects(file, node, loader.construct_document(node))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2026-99-99
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        right = "plain YAML; a chart's templates are rendered first: helm template … | vllm-scaler lint -"
        yield Flaw(Place(file, mark.line + 1 if mark else 1), f"no YAML: {what}", right)


def _objects(file: str, node: yaml.Node, content: Any) -> Iterator[Manifest]:
    if not isinstance(content, dict):
        return
    manifest = Manifest(file, node, content)
    if manifest.kind != "List":
        yield manifest
        return
    items = next((value for key, value in node.value if key.value == "items"), None)
    if isinstance(items, yaml.SequenceNode):
        for item, value in zip(items.value, manifest.items("items"), strict=True):
            yield from _objects(file, item, value)
