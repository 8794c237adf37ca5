"""What a service imports when it runs, read from the code without running it.

The walk begins at the service's module and follows every import of ours, also those inside functions. It follows
references in text (`"waybill_cli.jobs:app"`) and, for a pipeline, the references that the service asks for. That is
more than one run imports, and never less.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from waybill.pipelines import Pipeline, installed

ROOT = Path(__file__).parents[2]
SOURCES = [
    *ROOT.glob("libs/*/src"),
    *ROOT.glob("pipelines/*/src"),
    *ROOT.glob("services/*/src"),
    ROOT / "cli/src",
]
_REFERENCE = re.compile(r"waybill[a-z_]*(\.\w+)*(:\w+)?")


def imported_by(start: str, *, pipelines: frozenset[str], without: tuple[str, ...] = ()) -> set[str]:
    """The distributions that are imported from `start` on, ours included.

    `pipelines` are the distributions of those that are installed beside it. Packages in `without` are left out.
    """
    modules: set[str] = set()
    foreign: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module in modules or f"{module}.".startswith(tuple(f"{each}." for each in without)):
            continue
        modules.add(module)
        for name in _imports(module, pipelines):
            path, _, _attribute = name.rpartition(".")
            if _file(name) is not None:
                waiting += _with_parents(name)
            elif _file(path) is not None:
                waiting += _with_parents(path)
            else:
                foreign.add(name)
    return {each for name in modules | foreign for each in _distributions(name)}


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    names = [".".join(parts[: length + 1]) for length in range(len(parts))]
    return [name for name in names if _file(name) is not None]


@cache
def _file(module: str) -> Path | None:
    """The file of a module of ours."""
    if not module:
        return None
    for source in SOURCES:
        path = source.joinpath(*module.split("."))
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.exists():
                return file
    return None


@cache
def _imports(module: str, pipelines: frozenset[str]) -> frozenset[str]:
    path = _file(module)
    assert path is not None, module
    found: set[str] = set()
    for node in _running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _REFERENCE.fullmatch(node.value):
            reference = node.value.partition(":")[0]
            found |= {reference} if _file(reference) is not None else set()
        else:
            for part in _asked_for(node):
                found |= {each.partition(":")[0] for each in _brought(part, pipelines)}
    return frozenset(found)


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Everything but what only a type checker sees, and what a pipeline lists for whoever asks."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) == Pipeline.__name__:
            continue
        yield node
        yield from _running(node)


def _asked_for(node: ast.AST) -> Iterator[str]:
    """The parts of pipelines that a piece of code uses: `brought("kinds")`, `pipeline.handlers`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "brought" and isinstance(node.args[0], ast.Constant):
        yield str(node.args[0].value)
    elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pipeline":
        yield node.attr


def _brought(part: str, pipelines: frozenset[str]) -> Iterator[str]:
    for pipeline in installed():
        if f"waybill-{pipeline.name}" not in pipelines:
            continue
        value = getattr(pipeline, part, None)
        values = value.values() if isinstance(value, dict) else [value] if isinstance(value, str) else value or ()
        yield from (each for each in values if isinstance(each, str) and _file(each.partition(":")[0]) is not None)


def _distributions(module: str) -> set[str]:
    """Whose module it is. The standard library is nobody's."""
    file = _file(module)
    if file is not None:
        return {_own(next(source for source in SOURCES if file.is_relative_to(source)))}
    names = _installed().get(module.partition(".")[0], [])
    if len(names) > 1:  # a namespace that several share
        names = [name for name in names if _has(name, module)]
    return {canonicalize_name(name) for name in names}


@cache
def _own(source: Path) -> str:
    project = tomllib.loads((source.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["name"])


@cache
def _installed() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def _has(name: str, module: str) -> bool:
    files = {str(file) for file in distribution(name).files or []}
    path = module.replace(".", "/")
    parent = path.rpartition("/")[0]
    return any(f"{each}{end}" in files for each in (path, parent) for end in (".py", "/__init__.py"))
