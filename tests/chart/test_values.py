"""values.yaml: every value is described, used by a template, and in the documents that are made from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]

from charts.values_documents import Value, documents, read, readme, schema
from support.chart import MATRIX, Render, with_registry
from support.helm import Helm

COMPONENTS = ("api", "worker", "gateway", "operator", "janitor", "migration", "postgres")
"""Templates that all components share find their values in `$of`."""


@pytest.fixture(scope="module")
def values(chart: Path) -> list[Value]:
    return read((chart / "values.yaml").read_text())


def template_files(chart: Path) -> list[Path]:
    folder = chart / "templates"
    return [*folder.rglob("*.yaml"), *folder.rglob("*.tpl"), folder / "NOTES.txt"]


def without_comments(file: Path) -> str:
    return re.sub(r"\{\{-? ?/\*.*?\*/ ?-?\}\}", "", file.read_text(), flags=re.DOTALL)


def leaves(values: list[Value]) -> Iterator[Value]:
    for value in values:
        if value.children:
            yield from leaves(value.children)
        else:
            yield value


def test_every_value_is_described(values: list[Value]) -> None:
    def described(group: list[Value], by_parent: bool) -> Iterator[str]:
        for value in group:
            said = by_parent or bool(value.description)
            if value.children:
                yield from described(value.children, said)
            elif not said:
                yield value.name

    assert list(described(values, False)) == []
    sentences = [value.description for value in leaves(values) if value.description]
    assert [each for each in sentences if not each.endswith(".")] == []


def test_every_value_is_used_by_a_template(values: list[Value], chart: Path) -> None:
    used = {path for file in template_files(chart) for path in used_paths(without_comments(file))}
    unused = []
    for value in leaves(values):
        handed_on = {("*", *value.path[:end]) for end in range(1, len(value.path))}
        if value.path not in used and not handed_on & used:
            unused.append(value.name)
    assert unused == []


Groups = dict[str, list[tuple[str, ...]]]
"""Variables of a template, and the groups of values that they stand for."""

_PATH = r"(\$\w*)?((?:\.\w+)+)"
_ACCESS = re.compile(r"(?<![\w.$])" + _PATH)
_ASSIGNMENT = re.compile(r"\$(\w+) := " + _PATH)
_OF_COMPONENT = re.compile(r"\$(\w+) := \(?index \S+\.Values \S*component")
_HANDED_ON = re.compile(r"(toYaml |range [^}]*:= )$")


def used_paths(text: str) -> set[tuple[str, ...]]:
    """The values that a template names: (`*`, path) for a group that is handed on as a whole."""
    found: set[tuple[str, ...]] = set()
    for block in text.split("{{- define "):
        groups: Groups = {name: [(each,) for each in COMPONENTS] for name in _OF_COMPONENT.findall(block)}
        for name, base, path in _ASSIGNMENT.findall(block):
            groups[name] = resolved(groups, base, path)
        for access in _ACCESS.finditer(block):
            handed_on = _HANDED_ON.search(block, max(0, access.start() - 60), access.start())
            for full in resolved(groups, access[1] or "", access[2]):
                found |= {full, ("*", *full)} if handed_on else {full}
    return found


def resolved(groups: Groups, base: str, path: str) -> list[tuple[str, ...]]:
    """What `$base.path` is below the values; nothing if it is something else."""
    parts = tuple(path.split(".")[1:])
    if "Values" in parts:
        return [parts[parts.index("Values") + 1 :]]
    return [(*start, *parts) for start in groups.get(base.removeprefix("$"), [])]


def test_a_value_that_no_template_names_would_be_found() -> None:
    text = "{{ $of := index .root.Values .component }}{{ $of.image }}{{ $x := .Values.a }}{{ $x.b }}{{ toYaml $x.c }}"
    assert {("api", "image"), ("worker", "image"), ("a", "b"), ("*", "a", "c")} <= used_paths(text)
    assert not {("a", "d"), ("image",), ("*", "a")} & used_paths(text)


def test_every_value_that_a_template_uses_is_there(values: list[Value], chart: Path) -> None:
    known = {value.path[:end] for value in leaves(values) for end in range(1, len(value.path) + 1)}
    memory = {("_kept",), ("_certificate",)}  # what one rendering has made, for its other templates
    for file in template_files(chart):
        named = {tuple(each.split(".")) for each in re.findall(r"\.Values\.(\w[\w.]*)", without_comments(file))}
        assert named - known - memory == set(), file


def test_the_documents_are_those_of_the_values() -> None:
    for path, text in documents().items():
        assert path.read_text() == text, f"{path} is out of date. Run: make docs"


def test_every_value_is_in_the_table(values: list[Value], chart: Path) -> None:
    table = (chart / "README.md").read_text()
    for value in leaves(values):
        names = [".".join(value.path[:end]) for end in range(1, len(value.path) + 1)]
        assert any(f"| `{name}` |" in table for name in names), value.name


def test_the_defaults_and_all_installations_fit_the_schema(chart: Path) -> None:
    validator = jsonschema.Draft7Validator(json.loads((chart / "values.schema.json").read_text()))
    for each in (yaml.safe_load((chart / "values.yaml").read_text()), *map(with_registry, MATRIX.values())):
        assert [error.message for error in validator.iter_errors(each)] == []


@pytest.mark.parametrize("name", ["minimal", "everything", "HA"])
def test_it_passes_helms_own_check(helm: Helm, name: str) -> None:
    assert "0 chart(s) failed" in helm.lint(with_registry(MATRIX[name]))


def test_the_example_for_production_works_and_is_warned_of_nothing(helm: Helm, chart: Path) -> None:
    example = yaml.safe_load((chart / "values-production.example.yaml").read_text())
    assert "WARNING" not in helm.notes(example)
    assert helm.render(example)


def test_a_mapping_in_braces_is_open_and_a_block_is_not() -> None:
    text = "# -- Labels.\nlabels: {a: b}\ngroup:\n  # -- A name.\n  # @schema {maxLength: 3}\n  name: x\n"
    made = schema(read(text), {"group.title": "Use name.", "old": "Use name."})
    group = made["properties"]["group"]
    assert made["properties"]["labels"] == {"description": "Labels.", "type": "object"}
    assert group["properties"]["name"] == {"description": "A name.", "type": "string", "maxLength": 3}
    assert (group["additionalProperties"], made["additionalProperties"]) == (False, False)
    # Names from elsewhere pass, so that the chart itself can say what to use.
    assert {"global", "old"} <= made["properties"].keys()
    assert group["properties"]["title"] == {}


def test_a_comment_without_a_mark_is_about_the_group() -> None:
    text = "# About it.\ngroup:\n  # -- A | B,\n  # in two lines.\n  name: x\n"
    made = readme(read(text), "1.27 or newer")
    assert "### `group`\n\nAbout it.\n" in made
    assert '| `group.name` | `"x"` | A &#124; B, in two lines. |' in made


def test_further_objects_are_templates(render: Render) -> None:
    rendered = render(MATRIX["everything"])
    assert rendered.one("ConfigMap", "more")["data"] == {"in": "prod"}
    env: dict[str, Any] = {one["name"]: one.get("value") for one in rendered.pods_of("gateway")[0].main["env"]}
    assert env["HTTPS_PROXY"] == "http://proxy.papers:3128"
