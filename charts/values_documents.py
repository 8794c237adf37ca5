"""Documents made from the chart's values: `values.schema.json` and `README.md`, written or checked.

    python charts/values_documents.py --write
    python charts/values_documents.py --check

A comment with `--` above a value describes it. `# @schema {…}` adds to what its default says about its type. A mapping
that is written in braces is open, because its keys are not ours; one that is written as a block is not.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

CHART = Path(__file__).parent / "waybill"

_TYPES = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "null": "null", "seq": "array"}
_MARK = re.compile(r"^\s*# ?")

_INTRODUCTION = """\
# The Helm chart of Waybill

<!-- Made by `make docs` from values.yaml; edit that, or charts/values_documents.py. -->

Waybill turns documents into structured, checked results. This chart installs all of it: API and pages, gateway, workers
that scale on the time to drain the queue, the operator of the resource `WorkerPool`, the janitor, and the migration of
the database. [docs/kubernetes.md](../../docs/kubernetes.md) tells how to install, run, upgrade and remove it.

```sh
make images REGISTRY=localhost                                  # then load them into the cluster: docs/images.md
helm install waybill charts/waybill --namespace waybill --create-namespace --set image.registry=localhost --wait
helm test waybill --namespace waybill --logs
```

It needs Kubernetes {kubernetes} and Helm 3.14 or newer. `values.schema.json` refuses unknown values, and values that
cannot work together are refused in one message. [values-production.example.yaml](values-production.example.yaml) is a
start for production.

## Values
"""


@dataclass
class Value:
    """A key of values.yaml, and what the comments above it say."""

    path: tuple[str, ...]
    node: yaml.Node
    section: str = ""
    """Comments without a mark: what a group is about."""
    description: str = ""
    fragment: dict[str, Any] = field(default_factory=dict)
    children: list[Value] = field(default_factory=list)

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_group(self) -> bool:
        return isinstance(self.node, yaml.MappingNode) and not self.node.flow_style

    @property
    def default(self) -> Any:
        loader = yaml.SafeLoader("")
        return loader.construct_object(self.node, deep=True)


def read(text: str) -> list[Value]:
    """The values in their order."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return _children(root, (), text.splitlines())


def _children(node: yaml.MappingNode, path: tuple[str, ...], lines: list[str]) -> list[Value]:
    found = []
    for key, value in node.value:
        one = Value((*path, key.value), value)
        _read_comment(one, _comment_above(lines, key.start_mark.line))
        if one.is_group:
            one.children = _children(value, one.path, lines)
        found.append(one)
    return found


def _comment_above(lines: list[str], number: int) -> list[str]:
    above: list[str] = []
    while number > 0 and lines[number - 1].lstrip().startswith("#"):
        number -= 1
        above.insert(0, _MARK.sub("", lines[number]))
    return above


def _read_comment(value: Value, lines: list[str]) -> None:
    section, description = [], []
    for line in lines:
        if line.startswith("@schema "):
            value.fragment = yaml.safe_load(line.removeprefix("@schema "))
        elif line.startswith("-- "):
            description.append(line.removeprefix("-- "))
        elif description:
            description.append(line)
        else:
            section.append(line)
    value.section, value.description = " ".join(section), " ".join(description)


def schema(values: list[Value], other_names: dict[str, str]) -> dict[str, Any]:
    """values.schema.json."""
    made = _object(values)
    # What a chart that has this one below it shares with all of its charts.
    made["properties"]["global"] = {"type": "object"}
    for name in other_names:
        _allow(made, name.split("."))
    return {"$schema": "http://json-schema.org/draft-07/schema#", **made}


def _object(values: list[Value]) -> dict[str, Any]:
    properties = {value.path[-1]: _schema_of(value) for value in values}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _schema_of(value: Value) -> dict[str, Any]:
    said = {"description": value.description} if value.description else {}
    if value.is_group:
        # `settings: {}` in a block is open, because it says nothing about its keys.
        return {**said, **_object(value.children), **value.fragment}
    if isinstance(value.node, yaml.MappingNode):
        return {**said, "type": "object", **value.fragment}
    return {**said, "type": _TYPES[value.node.tag.rpartition(":")[2]], **value.fragment}


def _allow(made: dict[str, Any], name: list[str]) -> None:
    """Let a name through to the templates, which say what to use instead."""
    first, *rest = name
    if first not in made["properties"]:
        made["properties"][first] = {} if not rest else {"type": "object", "properties": {}}
    if rest:
        _allow(made["properties"][first], rest)


def readme(values: list[Value], kubernetes: str) -> str:
    """README.md: a table for each group, and one for what belongs to none."""
    parts = [_INTRODUCTION.format(kubernetes=kubernetes)]
    loose = [value for value in values if not value.is_group]
    parts.append(_table(loose))
    for group in values:
        if group.is_group:
            about = " ".join(each for each in (group.section, group.description) if each)
            parts.append(f"### `{group.name}`\n")
            if about:
                parts.append(f"{about}\n")
            parts.append(_table(list(_described(group))))
    return "\n".join(parts).rstrip() + "\n"


def _described(value: Value) -> Iterator[Value]:
    """What has a row of its own: a group that has a description is one value."""
    for child in value.children:
        if child.is_group and not child.description:
            yield from _described(child)
        else:
            yield child


def _table(values: list[Value]) -> str:
    rows = [f"| `{one.name}` | {_code(one.default)} | {one.description.replace('|', '&#124;')} |" for one in values]
    return "\n".join(["| value | default | description |", "| --- | --- | --- |", *rows, ""])


def _code(default: Any) -> str:
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def documents(chart: Path = CHART) -> dict[Path, str]:
    """Every document and its text."""
    values = read((chart / "values.yaml").read_text("utf-8"))
    about = yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))
    other_names = yaml.safe_load((chart / "files" / "other-names.yaml").read_text("utf-8"))
    kubernetes = re.sub(r"^>=([0-9.]+?)\.0-0$", r"\1 or newer", about["kubeVersion"])
    return {
        chart / "values.schema.json": json.dumps(schema(values, other_names), indent=2, ensure_ascii=False) + "\n",
        chart / "README.md": readme(values, kubernetes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Write or check the documents that are made from the chart's values.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    writes = parser.parse_args().write
    stale = False
    for path, text in documents().items():
        written = path.read_text("utf-8") if path.exists() else ""
        if written == text:
            continue
        if writes:
            path.write_text(text, "utf-8")
            continue
        stale = True
        difference = unified_diff(written.splitlines(), text.splitlines(), str(path), "values.yaml", n=0, lineterm="")
        sys.stderr.write("\n".join(difference) + f"\n{path} is out of date. Run: make docs\n")
    sys.exit(1 if stale else 0)


if __name__ == "__main__":
    main()
