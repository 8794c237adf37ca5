"""Can this program run on the database's schema?

The database lists every revision that was applied to it (`schema_revisions`). A program needs all revisions of its
branches. Newer ones do not disturb it, unless they declare that they need a newer release. So two releases run side by
side while one replaces the other, in both directions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.db.branches import Branch, branches
from waybill.db.revisions import revisions
from waybill.errors import WaybillError

if TYPE_CHECKING:
    from waybill.db.database import Connection

RELEASE_0_1_0 = "0009"
"""What release 0.1.0 calls its schema. It had one line of revisions for everything, and Alembic's own table."""
INITIAL = "convert_0001"
"""The last of the revisions that make the same schema in branches. It depends on `engine_0001` and that on
`platform_0001`."""
_BEFORE_0_1_0 = frozenset(f"{number:04}" for number in range(1, 9))

REPLACED = "waybill_replaced"
"""The schema that a restore puts the database into that it replaces, until it has ended well."""
_IS_BEING_RESTORED = f"SELECT to_regnamespace('{REPLACED}') IS NOT NULL"

TABLES = "SELECT to_regclass('schema_revisions') IS NOT NULL, to_regclass('alembic_version') IS NOT NULL"
APPLIED = "SELECT revision, branch, oldest_release FROM schema_revisions"
ALEMBIC = "SELECT version_num FROM alembic_version"


class SchemaMismatch(WaybillError):
    """The database and this program are of different versions."""


@dataclass(frozen=True, slots=True)
class AppliedRevision:
    """A revision that the database has. This program may not know it."""

    name: str
    branch: str
    oldest_release: str | None
    """The oldest release of the branch's package that can run on it."""


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """What the database says about its schema."""

    applied: Mapping[str, AppliedRevision]
    before_branches: frozenset[str] = frozenset()
    """What `alembic_version` says, as long as the database has no list of revisions: it is older than that, empty, or
    the database of an application with migrations of its own."""

    @property
    def is_of_release_0_1_0(self) -> bool:
        return not self.applied and RELEASE_0_1_0 in self.before_branches


@dataclass(frozen=True, slots=True)
class BranchStatus:
    """Where one branch stands."""

    branch: str
    at: str | None
    """The last of its revisions that the database has, perhaps one that this program does not know; None before the
    first."""
    wanted: str
    """The last that is installed."""
    behind: bool
    """Whether the database lacks a revision that is installed."""

    def __str__(self) -> str:
        if not self.behind:
            return f"{self.branch} is at {self.at}"
        if self.at is None:
            return f"{self.branch} is missing and needs {self.wanted}"
        return f"{self.branch} is at {self.at} and needs {self.wanted}"


async def current(connection: Connection) -> DatabaseSchema:
    """What the database says about its schema."""
    listed, has_alembic = await connection.fetchrow(TABLES) or (False, False)
    if listed:
        return applied_schema(tuple(row) for row in await connection.fetch(APPLIED))
    rows = await connection.fetch(ALEMBIC) if has_alembic else []
    return DatabaseSchema({}, frozenset(row["version_num"] for row in rows))


def applied_schema(rows: Iterable[tuple[str, str, str | None]]) -> DatabaseSchema:
    """The schema of a database with these rows in `schema_revisions`."""
    return DatabaseSchema({name: AppliedRevision(name, branch, oldest) for name, branch, oldest in rows})


def branch_statuses(applied: Mapping[str, AppliedRevision]) -> list[BranchStatus]:
    """Where each installed branch stands, given the database's revisions."""
    found = []
    for branch in branches():
        wanted = [one.name for one in revisions().values() if one.branch == branch.name]
        unknown = sorted(one.name for one in applied.values() if one.branch == branch.name and one.name not in wanted)
        there = [name for name in wanted if name in applied] + unknown
        behind = any(name not in applied for name in wanted)
        found.append(BranchStatus(branch.name, there[-1] if there else None, wanted[-1], behind))
    return found


async def refuse_unfinished_restore(connection: Connection) -> None:
    """Raise SchemaMismatch if a restore is under way or was killed: what is there now is not what it will be."""
    if await connection.fetchval(_IS_BEING_RESTORED):
        raise SchemaMismatch(
            "A restore of this database is under way, or was interrupted. Wait for it, or run it again "
            "(`waybill restore`). Until then, the database from before is kept."
        )


async def check_schema(connection: Connection) -> None:
    """Raise SchemaMismatch, with what to do about it, unless this program can run on the database."""
    schema = await current(connection)
    refuse_incompatible(schema)
    if schema.is_of_release_0_1_0:
        raise SchemaMismatch("The database still has the schema of release 0.1.0. Run: waybill migrate")
    if not schema.applied and not schema.before_branches & revisions().keys():
        raise SchemaMismatch("The database is empty. Run: waybill migrate")
    behind = [str(one) for one in branch_statuses(schema.applied) if one.behind]
    if behind:
        raise SchemaMismatch(f"The database's schema is behind: {'; '.join(behind)}. Run: waybill migrate")


def refuse_incompatible(schema: DatabaseSchema) -> None:
    """Raise SchemaMismatch for a database that this program can neither run on nor bring up to date."""
    if early := sorted(_BEFORE_0_1_0 & schema.before_branches):
        raise SchemaMismatch(
            f"The database's schema (at {', '.join(early)}) is older than release 0.1.0. "
            "Migrate it with release 0.1.0 first, then with this one."
        )
    if schema.is_of_release_0_1_0 and INITIAL not in revisions():
        raise SchemaMismatch(
            "The database has the schema of release 0.1.0, which includes the convert pipeline, and that is not "
            "installed here. Install it (the package waybill-convert), then run: waybill migrate"
        )
    for branch in branches():
        demands = [one for one in schema.applied.values() if one.branch == branch.name and _is_too_new(one, branch)]
        if demands:
            newest = max(demands, key=lambda one: _numbers(one.oldest_release or ""))
            raise SchemaMismatch(
                f"The database's schema is ahead: its revision {newest.name} needs release {newest.oldest_release} of "
                f"{branch.name} or a newer one, and this is {branch.release}. Install that release. "
                "Check with: waybill migrate --check"
            )


def _is_too_new(applied: AppliedRevision, branch: Branch) -> bool:
    if applied.oldest_release is None or applied.name in revisions():
        return False
    return _numbers(applied.oldest_release) > _numbers(branch.release)


def _numbers(release: str) -> tuple[int, ...]:
    """`0.3.0` as numbers that compare; `0.3` is the same. A candidate (`0.3.0rc1`) counts as its release."""
    found = re.match(r"\d+(?:\.\d+)*", release)
    numbers = [int(number) for number in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
