"""What the operator gives in YAML files: a mapping of names, read without making anything of its values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scaler.cli.files import TooLong, content
from scaler.cli.yaml_text import FAULTS, TextLoader, fault, repeated_keys
from scaler.quoting import one_line, quoted
from scaler.targets import SettingsError


def read(path: Path, one: str, many: str) -> tuple[dict[Any, Any], list[str]]:
    """Return a file's mapping by name, and what is wrong with it so far: keys that stand there twice.

    `one` and `many` are what is in it, for its errors.

    Raises SettingsError for what is no such mapping, OSError without the file.
    """
    try:
        loader = TextLoader(content(path))
        root = loader.get_single_node()
        repeated = list(repeated_keys(root)) if root else []
        found = loader.construct_document(root) if root else None
    except TooLong as error:
        raise SettingsError([f"{path}: {error}: those are no {many}"]) from None
    except FAULTS as error:
        text, line = fault(error)
        raise SettingsError([f"{path}, line {line}: no YAML: {one_line(text)}"]) from None
    if found is None:
        return {}, []
    if not isinstance(found, dict):
        raise SettingsError([f"{path}: a mapping of {one} names is expected, found {quoted(found)}"])
    return found, [
        f"{path}, line {each.line}: {one_line(each.key)} stands there twice, first in line {each.first}: keep one"
        for each in repeated
    ]
