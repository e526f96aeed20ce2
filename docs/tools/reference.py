"""The pages of docs/reference, written from what the product itself checks: `python -m docs.tools.reference`.

With `--check` nothing is written; pages that are not what they should be are named, and the exit status is 1.
Chinese pages take their words from reference.zh.yaml; what is not translated there stands in English.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin

import typer
import yaml
from pydantic.fields import FieldInfo

from scaler.cli.linting import RULES
from scaler.cli.serve import serve
from scaler.policy.parsing import Settings
from scaler.policy.presets import DEFAULT, PRESETS
from scaler.policy.rules import METRICS
from scaler.policy.settings import PolicySettings
from scaler.serving import metrics
from scaler.targets.settings import TriggerSettings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
VALUES_FILE = ROOT / "k8s" / "chart" / "values.yaml"
WRITTEN = "<!-- written by python -m docs.tools.reference; edit what it is written from -->\n"
LANGUAGES = {"en": ".md", "zh": ".zh.md"}

Words = Mapping[str, str]
"""English → the page's language; empty for English itself."""


def pages() -> dict[Path, str]:
    """Every page of the reference, as it should be."""
    return {
        FOLDER / f"{name}{suffix}": "\n".join([*write(words(language)), "", WRITTEN])
        for language, suffix in LANGUAGES.items()
        for name, write in WRITERS.items()
    }


def words(language: str) -> Words:
    """The translations into a language."""
    if language == "en":
        return {}
    pairs = yaml.safe_load((Path(__file__).parent / f"reference.{language}.yaml").read_text("utf-8"))
    return {pair["en"]: pair[language] for pair in pairs}


def trigger(words: Words) -> Iterator[str]:
    """What a trigger's metadata may say."""
    yield f"# {_in('Keys of a trigger', words)}"
    yield ""
    yield _in(
        "All are optional, and are written as text in the trigger's `metadata`. A duration reads `300`, `300s`, `5m` "
        "or `500ms`. An unknown key or a wrong value is refused, with what would be right; `vllm-scaler lint` says so "
        "before.",
        words,
    )
    yield from _section("Which policy", words)
    yield from _table(
        ("key", "default", "example", "meaning"),
        [
            (
                "`policy`",
                f"`{DEFAULT}`",
                "`ray-serve`",
                "A preset, or one of the operator's own policies; keys beside it win.",
            )
        ],
        words,
    )
    for heading, fields in _groups(PolicySettings):
        yield from _keys(heading, fields, words)
    yield from _keys(
        "Reading pods",
        [name for name in TriggerSettings.model_fields if name not in PolicySettings.model_fields],
        words,
    )
    yield from _section("What rules may compare", words)
    yield _in("Queues and latencies in seconds, rates per second, use from 0 to 1.", words)
    yield ""
    yield ", ".join(f"`{name}`" for name in METRICS)


def _groups(model: type[Settings]) -> Iterator[tuple[str, list[str]]]:
    """The fields of a model under the comments that stand between them."""
    heading, fields = "", list[str]()
    for line in inspect.getsource(model).splitlines():
        if comment := re.fullmatch(r" {4}# (.+)", line):
            if fields:
                yield heading, fields
            heading, fields = comment[1], []
        elif (name := re.match(r" {4}(\w+): ", line)) and name[1] in model.model_fields:
            fields.append(name[1])
    yield heading, fields


def _keys(heading: str, fields: Iterable[str], words: Words) -> Iterator[str]:
    title, _, rest = heading.rstrip(".").partition(": ")
    yield from _section(title, words)
    if rest:
        yield _in(f"{rest[0].upper()}{rest[1:]}.", words)
        yield ""
    rows = []
    for name in fields:
        field = TriggerSettings.model_fields[name]
        rows.append((f"`{field.alias}`", _default(name, field), _examples(field), field.description or ""))
    yield from _table(("key", "default", "example", "meaning"), rows, words)


def _default(name: str, field: FieldInfo) -> str:
    value = field.default
    if value is None or value == ():
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}s`" if name.endswith("_s") else f"`{value}`"


def _examples(field: FieldInfo) -> str:
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return ", ".join(f"`{text}`" for text in choices or field.examples or ())


def presets(words: Words) -> Iterator[str]:
    """What each preset says, as a trigger would say it."""
    yield f"# {_in('Values of the presets', words)}"
    yield ""
    yield _in(
        "A preset is nothing but these keys: name it by `policy`, and set beside it what should differ. What each is "
        "for: [presets](../presets.md).",
        words,
    )
    for name, values in PRESETS.items():
        yield from _section(f"`{name}`", words)
        yield "```yaml"
        yield yaml.safe_dump(dict(values), sort_keys=False, width=110, allow_unicode=True).rstrip()
        yield "```"


def serve_options(words: Words) -> Iterator[str]:
    """The options of `vllm-scaler serve`."""
    app = typer.Typer()
    app.command()(serve)
    yield f"# {_in('Options of `vllm-scaler serve`', words)}"
    yield ""
    yield _in(
        "The chart sets them for you. Each can also be given by its environment variable.",
        words,
    )
    panels: dict[str, list[tuple[str, ...]]] = {}
    for option in typer.main.get_command(app).params:
        if panel := getattr(option, "rich_help_panel", None):
            value = getattr(option.default, "value", option.default)  # of an enumeration
            default = "–" if value in (None, "", False) else f"`{value}`"
            name = " ".join(filter(None, (option.opts[0], option.metavar)))
            meaning = getattr(option, "help", None) or ""
            panels.setdefault(panel, []).append((f"`{name}`", default, f"`{option.envvar}`", meaning))
    for panel, rows in panels.items():
        yield from _section(panel, words)
        yield from _table(("option", "default", "variable", "meaning"), rows, words)


def chart(words: Words) -> Iterator[str]:
    """The values of the Helm chart."""
    yield f"# {_in('Values of the Helm chart', words)}"
    yield ""
    yield _in("`helm show values k8s/chart` prints the same. A value that is not here is refused.", words)
    yield ""
    yield from _table(("value", "default", "meaning"), _values(VALUES_FILE.read_text("utf-8")), words)


def _values(text: str) -> Iterator[tuple[str, ...]]:
    """Each value by its path, with its default and the comments above and beside it."""
    lines = text.splitlines()

    def comment(line: int) -> str:
        above = line
        while above and lines[above - 1].lstrip().startswith("#"):
            above -= 1
        beside = re.search(r"\s# (.+)", lines[line])
        said = [each.lstrip().removeprefix("#").strip() for each in lines[above:line]]
        return " ".join([*said, *([beside[1]] if beside else [])])

    def walk(node: yaml.MappingNode, path: str, inherited: str) -> Iterator[tuple[str, ...]]:
        for key, value in node.value:
            place = f"{path}.{key.value}" if path else key.value
            said = " ".join(filter(None, (inherited, comment(key.start_mark.line))))
            inherited = ""
            if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
                yield from walk(value, place, said)
            else:
                default = text[value.start_mark.index : value.end_mark.index].strip()
                yield f"`{place}`", f"`{default}`", said

    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    yield from walk(root, "", "")


def own_metrics(words: Words) -> Iterator[str]:
    """The scaler's own metrics."""
    yield f"# {_in('Metrics of the scaler', words)}"
    yield ""
    yield _in("At `/metrics` of the HTTP port. What is unknown has no sample.", words)
    yield ""
    told = [re.split(r"\s*\|\s*", line.strip("| ")) for line in (metrics.__doc__ or "").splitlines() if line[:1] == "|"]
    yield from _table(tuple(told[0]), told[2:], words)
    yield ""
    yield _in("The labels of a target are `namespace`, `scaled_object` and `trigger`.", words)


def _section(heading: str, words: Words) -> tuple[str, ...]:
    return "", f"## {_in(heading, words)}", ""


def _table(head: tuple[str, ...], rows: Iterable[Iterable[str]], words: Words) -> Iterator[str]:
    yield _row(_in(cell, words) for cell in head)
    yield _row("---" for _ in head)
    for row in rows:
        yield _row(_in(cell, words) for cell in row)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _in(text: str, words: Words) -> str:
    return words.get(text, text)


def lint_rules(words: Words) -> Iterator[str]:
    """What `vllm-scaler lint` looks for."""
    yield f"# {_in('Rules of `vllm-scaler lint`', words)}"
    yield ""
    yield _in(
        "Errors do harm or are refused, warnings do harm in most cases, hints are worth a thought. `--ignore RULE` "
        "leaves one out.",
        words,
    )
    yield ""
    rows = [(f"`{rule.name}`", str(rule.severity.value), rule.why) for rule in RULES]
    yield from _table(("rule", "finds", "because"), rows, words)


WRITERS: Mapping[str, Callable[[Words], Iterator[str]]] = {
    "trigger": trigger,
    "presets": presets,
    "serve": serve_options,
    "chart": chart,
    "metrics": own_metrics,
    "lint": lint_rules,
}
"""Page → what writes its lines."""


def main() -> None:
    """Write the pages, or with --check name those that are not as they should be."""
    check = "--check" in sys.argv[1:]
    stale = [page for page, text in pages().items() if not page.exists() or page.read_text("utf-8") != text]
    for page in stale:
        if not check:
            page.write_text(pages()[page], "utf-8")
        print(f"{page.relative_to(ROOT)}{' is not up to date' if check else ''}")
    if check and stale:
        sys.exit("run python -m docs.tools.reference")


if __name__ == "__main__":
    main()
