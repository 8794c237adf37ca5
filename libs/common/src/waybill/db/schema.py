"""Is the database's schema the one this program was built for? Each branch of migrations is compared on its own."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg

from waybill.db.branches import Branch, branches
from waybill.errors import WaybillError

if TYPE_CHECKING:
    from waybill.db.database import Connection

MIGRATIONS = Path(__file__).parent / "migrations"

RELEASE_0_1_0 = "0009"
"""What release 0.1.0 calls its schema. It had one line of revisions for everything."""
INITIAL = "convert_0001"
"""The same schema in branches: what a database of release 0.1.0 is stamped with before it is upgraded. It depends on
`engine_0001` and that on `platform_0001`, and the database names only the last of what depends on each other."""
_BEFORE_0_1_0 = frozenset(f"{number:04}" for number in range(1, 9))

_AT = "SELECT version_num FROM alembic_version"
_SAID = ("revision", "down_revision", "depends_on")


class SchemaMismatch(WaybillError):
    """The database and this program are of different versions."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one branch stands."""

    branch: str
    at: str | None
    """The last of its revisions that the database has; None before the first."""
    wanted: str
    """The last that is installed."""

    def __str__(self) -> str:
        if self.at == self.wanted:
            return f"{self.branch} is at {self.at}"
        if self.at is None:
            return f"{self.branch} is missing and needs {self.wanted}"
        return f"{self.branch} is at {self.at} and needs {self.wanted}"


@dataclass(frozen=True, slots=True)
class MigrationRevision:
    """What a migration says about itself."""

    name: str
    branch: str
    follows: str | None
    depends_on: tuple[str, ...]


@cache
def revisions() -> dict[str, MigrationRevision]:
    """The revisions of all installed branches, by name, each branch from its first to its last.

    They are read without Alembic, which every process would otherwise import only to compare a few names.
    """
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
    return MigrationRevision(said["revision"], branch, said["down_revision"], tuple(said["depends_on"] or ()))


def standings(at: Collection[str]) -> list[Standing]:
    """Where each installed branch stands, given the database's revisions. Unknown ones are nobody's."""
    applied = _with_all_before(at)
    found = []
    for branch in branches():
        names = [one.name for one in revisions().values() if one.branch == branch.name]
        last = next((name for name in reversed(names) if name in applied), None)
        found.append(Standing(branch.name, last, names[-1]))
    return found


def _with_all_before(at: Iterable[str]) -> set[str]:
    """Revisions, and all that each of them follows or depends on: the database names only the last ones."""
    known = revisions()
    applied: set[str] = set()
    waiting = [name for name in at if name in known]
    while waiting:
        name = waiting.pop()
        if name not in applied:
            applied.add(name)
            one = known[name]
            waiting += [*one.depends_on, *([one.follows] if one.follows is not None else [])]
    return applied


async def current(connection: Connection) -> frozenset[str]:
    """The revisions the database is at: none when it is empty, several as soon as there are branches."""
    try:
        return frozenset(row["version_num"] for row in await connection.fetch(_AT))
    except asyncpg.UndefinedTableError:
        return frozenset()


async def check_schema(connection: Connection) -> None:
    """Raise SchemaMismatch, with what to do about it, unless every installed branch is at its last revision."""
    at = await current(connection)
    refuse_unknown(at)
    if not at:
        raise SchemaMismatch("The database is empty. Run: waybill migrate")
    if RELEASE_0_1_0 in at:
        raise SchemaMismatch("The database still has the schema of release 0.1.0. Run: waybill migrate")
    behind = [str(one) for one in standings(at) if one.at != one.wanted]
    if behind:
        raise SchemaMismatch(f"The database's schema is behind: {'; '.join(behind)}. Run: waybill migrate")


def refuse_unknown(at: Collection[str]) -> None:
    """Raise SchemaMismatch for a database that this program cannot bring up to date."""
    if early := sorted(_BEFORE_0_1_0.intersection(at)):
        raise SchemaMismatch(
            f"The database's schema (at {', '.join(early)}) is older than release 0.1.0. "
            "Migrate it with release 0.1.0 first, then with this one."
        )
    if unknown := sorted(set(at) - revisions().keys() - {RELEASE_0_1_0}):
        raise SchemaMismatch(
            f"The database's schema is ahead: it has {', '.join(unknown)}, which nothing installed here knows. "
            "Install the newer Waybill or the pipeline that made it. Check with: waybill migrate --check"
        )
