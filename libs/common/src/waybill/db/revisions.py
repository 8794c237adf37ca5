"""Which migrations are installed: the revisions of every branch, in an order in which they can be applied.

They are read without Alembic and without importing them: every service compares them with the database when it starts,
and only `waybill migrate` runs them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from waybill.db.branches import Branch, branches

_SAID = ("revision", "down_revision", "depends_on", "oldest_release")


@dataclass(frozen=True, slots=True)
class MigrationRevision:
    """What a migration says about itself."""

    name: str
    branch: str
    follows: str | None
    depends_on: tuple[str, ...]
    oldest_release: str | None
    """The oldest release of its package whose code can run on this schema. None if it only adds, so that any can."""
    path: Path


@cache
def revisions() -> dict[str, MigrationRevision]:
    """The revisions of all installed branches, by name, each branch from its first to its last."""
    return {one.name: one for branch in branches() for one in _in_order(branch)}


def _in_order(branch: Branch) -> list[MigrationRevision]:
    found = [_read(path, branch.name) for path in Path(branch.folder).glob("*.py") if path.name != "__init__.py"]
    followed_by = {one.follows: one for one in found}
    ordered: list[MigrationRevision] = []
    while (one := followed_by.get(ordered[-1].name if ordered else None)) is not None:
        ordered.append(one)
    if not ordered or len(ordered) < len(found):
        raise LookupError(f"the migrations of {branch.name} are not one line from a first revision to a last")
    return ordered


def _read(path: Path, branch: str) -> MigrationRevision:
    said: dict[str, Any] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in _SAID:
            said[node.targets[0].id] = ast.literal_eval(node.value)
    return MigrationRevision(
        said["revision"],
        branch,
        said["down_revision"],
        tuple(said["depends_on"] or ()),
        said.get("oldest_release"),
        path,
    )


def with_all_before(names: Iterable[str]) -> list[MigrationRevision]:
    """The named revisions and everything that they follow or depend on, each after what it needs. Unknown ones are
    left out."""
    known = revisions()
    ordered: dict[str, MigrationRevision] = {}

    def add(name: str) -> None:
        if name in ordered or name not in known:
            return
        one = known[name]
        for needed in (*((one.follows,) if one.follows is not None else ()), *one.depends_on):
            add(needed)
        ordered[name] = one

    for name in names:
        add(name)
    return list(ordered.values())
