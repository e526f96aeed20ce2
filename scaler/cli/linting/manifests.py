"""Kubernetes manifests as they stand in files: plain values, and the line of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from scaler.cli.linting.finding import Flaw, Place
from scaler.cli.yaml_text import FAST_LOADER, FAULTS, fault, repeated_keys
from scaler.quoting import one_line

Step = str | int
Reference = tuple[str, str, str]
"""Group, kind and name of an object, within its namespace."""

_TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Written:
    """A scalar as it stands in a file, and what YAML makes of it."""

    text: str
    made: Any


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

    def text(self, *path: Step) -> str:
        """Return the text or number at `path` as text, empty where there is neither."""
        value = self.get(*path)
        return str(value) if isinstance(value, str | int | float) else ""

    def scalars(self, *path: Step) -> dict[str, Written]:
        """Return the scalars of the mapping at `path` by key, as they were written."""
        node = self._way(*path)[-1][1]
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return {
            key.value: Written(value.value, value.value if value.tag == _TEXT else yaml.safe_load(value.value))
            for key, value in pairs
            if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)
        }

    def place(self, *path: Step) -> Place:
        """Return where `path` stands, or the part of it that exists."""
        return Place(self.file, self._way(*path)[-1][0] + 1)

    def _way(self, *path: Step) -> list[tuple[int, yaml.Node]]:
        """The lines, from 0, and the nodes on the way along `path` as far as it exists, the object itself first."""
        way = [(self.node.start_mark.line, self.node)]
        for step in path:
            node = way[-1][1]
            if isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == step), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = (node.value[step], node.value[step])
            else:
                found = None
            if found is None:
                break
            way.append((found[0].start_mark.line, found[1]))
        return way

    @property
    def kind(self) -> str:
        """The object's kind, empty where it has none."""
        return self.text("kind")

    @property
    def group(self) -> str:
        """The API group, empty for the core one."""
        group, slash, _version = self.text("apiVersion").partition("/")
        return group if slash else ""

    @property
    def name(self) -> str:
        """`metadata.name`"""
        return self.text("metadata", "name")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; `default` where the file leaves it to kubectl."""
        return self.text("metadata", "namespace") or "default"

    @property
    def scaled(self) -> Reference | None:
        """What this object scales: a ScaledObject with KEDA's defaults, an HPA; None for any other object."""
        ref = ("spec", "scaleTargetRef")
        group, _, _version = self.text(*ref, "apiVersion").partition("/")
        kind, name = self.text(*ref, "kind"), self.text(*ref, "name")
        match self.kind:
            case "ScaledObject":
                return group or "apps", kind or "Deployment", name
            case "HorizontalPodAutoscaler":
                return group, kind, name
            case _:
                return None


class Manifests:
    """All objects of the input, found by what they are and by what they scale, however many there are."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self._all = sorted(manifests, key=Manifest.place)
        self._named: dict[tuple[str, Reference], list[Manifest]] = defaultdict(list)
        self._scalers: dict[tuple[str, Reference], list[Manifest]] = defaultdict(list)
        for each in self._all:
            self._named[each.namespace, (each.group, each.kind, each.name)].append(each)
            if each.scaled is not None:
                self._scalers[each.namespace, each.scaled].append(each)

    def __iter__(self) -> Iterator[Manifest]:
        return iter(self._all)

    def named(self, namespace: str, reference: Reference) -> Sequence[Manifest]:
        """Return the objects that are it, in the order of files and lines."""
        return self._named.get((namespace, reference), ())

    def scalers(self, namespace: str, reference: Reference) -> Sequence[Manifest]:
        """Return the ScaledObjects and HPAs that scale it, in the order of files and lines."""
        return self._scalers.get((namespace, reference), ())


def read(file: str, text: str | bytes) -> Iterator[Manifest | Flaw]:
    """Read every object of a file; items of a List one by one.

    A flaw where the text is no YAML, and where it can be read in two ways.
    """
    try:
        loader = FAST_LOADER(text)
        while (node := loader.get_node() if loader.check_node() else None) is not None:
            for each in repeated_keys(node):
                what = f"{one_line(each.key)} stands there twice, first in line {each.first}"
                yield Flaw(Place(file, each.line), what, "one of them: kubectl refuses both")
            yield from _objects(file, node, loader.construct_document(node))
    except FAULTS as error:
        what, line = fault(error)
        right = "plain YAML; a chart's templates are rendered first: helm template … | vllm-scaler lint -"
        yield Flaw(Place(file, line), f"no YAML: {what}", right)


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
