"""A class name means one thing in all packages, so that a search for it finds one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def sources() -> Iterator[Path]:
    for group in ("libs", "pipelines", "services", "cli"):
        yield from ROOT.glob(f"{group}/**/src/**/*.py")


def test_no_class_name_is_defined_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert "JobKind" in places, "the sources are somewhere else"
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice, "give one of each another name, from docs/glossary.md"
