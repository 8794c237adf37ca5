"""Applies revisions: each in a transaction of its own, one runner at a time, and without standing in anybody's way.

A statement that changes a table waits for everybody who uses it, and meanwhile everybody else waits behind it: beside a
long dump, one `ALTER TABLE jobs` would stop all enqueues. So a statement waits for a second at most. Then the runner
gives up the whole revision, lets the others through, and tries again.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import structlog
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from waybill.config import DatabaseUrl
from waybill.db.migrations.statements import limit_lock_waits
from waybill.db.revisions import MigrationRevision, revisions, with_all_before
from waybill.db.schema import (
    ALEMBIC,
    APPLIED,
    INITIAL,
    RELEASE_0_1_0,
    TABLES,
    DatabaseSchema,
    applied_schema,
    refuse_incompatible,
)
from waybill.db.servers import Servers
from waybill.errors import WaybillError

if TYPE_CHECKING:
    from waybill.db.database import Connection as Guard

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger()

_LOCK = 7_229_142
"""Any number, as long as it stays the same: the advisory lock of all migration runs since release 0.2.0."""
_LOCK_OF_0_1_0 = 7_229_141

_NAME = "waybill migrate"
_TURN_EVERY = 0.2
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_MAY_PASS = {"55P03", "40P01"}
"""SQL states of a lock that was not available in time, and of a deadlock."""

# Every revision has its row, not only the last of each branch: a program that does not know the newest ones can still
# see that it has all that it needs.
_LIST = """
CREATE TABLE IF NOT EXISTS schema_revisions (
    revision       text PRIMARY KEY,
    branch         text NOT NULL,
    oldest_release text,
    applied_at     timestamptz NOT NULL DEFAULT now()
)
"""
_RECORD = "INSERT INTO schema_revisions (revision, branch, oldest_release) VALUES (:revision, :branch, :oldest_release)"

# Release 0.1.0 runs only where this table says exactly '0009'. Nobody else reads it.
_TABLE_OF_0_1_0 = """
CREATE TABLE alembic_version (
    version_num varchar(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
"""
_ADMIT_0_1_0 = "INSERT INTO alembic_version (version_num) VALUES (:release)"
_REFUSE_0_1_0 = "UPDATE alembic_version SET version_num = :revision WHERE version_num = :release"

_OLDEST_TRANSACTION = """
SELECT format('process %s (%s, since %s)', pid, COALESCE(NULLIF(application_name, ''), 'no name'),
              to_char(xact_start AT TIME ZONE 'UTC', 'HH24:MI:SS') || ' UTC')
  FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL
   AND pid <> pg_backend_pid() AND application_name <> :name
 ORDER BY xact_start
 LIMIT 1
"""


class MigrationBlocked(WaybillError):
    """Others held locks on the tables for longer than the runner was willing to wait."""


class Runner:
    def __init__(self, url: DatabaseUrl, patience: float) -> None:
        self._patience = patience
        self._servers = Servers(url, patience=10)
        self._session: dict[str, Any] = {
            "server_settings": {"application_name": _NAME},
            "statement_cache_size": 0,  # a pooler may stand in between
        }
        if len(url.servers) > 1 and not url.names_session_kind:
            self._session["target_session_attrs"] = "read-write"

    async def run(self, targets: Collection[str] | None) -> None:
        """Apply the targets and all that they need; without targets, everything that is installed."""
        async with self._connected() as engine, self._turn() as guard:
            schema = await self._persist(engine, "the list of revisions", _adopt)
            refuse_incompatible(schema)
            for one in with_all_before(revisions() if targets is None else targets):
                if one.name not in schema.applied:
                    await guard.execute("SELECT 1")  # raises if we lost our turn with the connection
                    await self._persist(engine, one.name, partial(_apply, one))
                    log.debug("revision_applied", revision=one.name)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncEngine]:
        engine = create_async_engine(
            "postgresql+asyncpg://",
            poolclass=NullPool,
            connect_args={
                **self._session,
                "async_creator_fn": self._servers.connect,
                "prepared_statement_cache_size": 0,
                "prepared_statement_name_func": lambda: f"waybill_{uuid4().hex}",
            },
        )
        try:
            yield engine
        finally:
            await engine.dispose()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Guard]:
        """Wait until no other runner works, and keep them waiting.

        The lock is held by an idle transaction on a connection of its own, because the work is many transactions.
        `CREATE INDEX CONCURRENTLY` waits for every transaction that has a snapshot. So whoever waits for the turn waits
        outside a transaction, and whoever has it lets go of its snapshot.
        """
        guard = await self._servers.connect(**self._session)
        try:
            while True:
                transaction = guard.transaction()
                await transaction.start()
                if await guard.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK):
                    break
                await transaction.rollback()
                await asyncio.sleep(_TURN_EVERY)
            await guard.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # ends the snapshot, too
            yield guard
        finally:
            guard.terminate()

    async def _persist(self, engine: AsyncEngine, what: str, work: Callable[[Connection], T]) -> T:
        """Do the work in a transaction, again and again while others hold the locks that it needs."""
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._patience
        pause = _FIRST_PAUSE
        while True:
            try:
                async with engine.connect() as connection:
                    return await connection.run_sync(_in_transaction, work)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in _MAY_PASS:
                    raise
                async with engine.connect() as connection:
                    holder = await connection.scalar(text(_OLDEST_TRANSACTION), {"name": _NAME})
                if clock() + pause > give_up_at:
                    whose = f" The oldest transaction is that of {holder}." if holder else ""
                    raise MigrationBlocked(
                        f"{what} could not be applied within {self._patience:.0f} s, because others use the tables."
                        f"{whose} Wait for them or end them, then run: waybill migrate"
                    ) from error
                log.warning("migration_waits", revision=what, for_whom=holder, again_in=round(pause, 1))
                # Not a fixed rhythm: it could be that of somebody else who comes again and again.
                await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 - spreads tries, guards nothing
                pause = min(pause * 2, _LONGEST_PAUSE)


def _in_transaction(connection: Connection, work: Callable[[Connection], T]) -> T:
    context = MigrationContext.configure(connection)
    with context.begin_transaction(), Operations.context(context):
        limit_lock_waits()
        return work(connection)


def _apply(revision: MigrationRevision, connection: Connection) -> None:
    spec = importlib.util.spec_from_file_location(revision.name, revision.path)
    if spec is None or spec.loader is None:
        raise LookupError(f"{revision.path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.upgrade()
    _record(connection, [revision])
    if revision.name == INITIAL and not _tables(connection)[1]:
        connection.execute(text(_TABLE_OF_0_1_0))
        connection.execute(text(_ADMIT_0_1_0), {"release": RELEASE_0_1_0})
    if revision.oldest_release is not None and _tables(connection)[1]:
        refused = {"revision": revision.name, "release": RELEASE_0_1_0}
        connection.execute(text(_REFUSE_0_1_0), refused)


def _record(connection: Connection, applied: Iterable[MigrationRevision]) -> None:
    for one in applied:
        row = {"revision": one.name, "branch": one.branch, "oldest_release": one.oldest_release}
        connection.execute(text(_RECORD), row)


def _tables(connection: Connection) -> tuple[bool, bool]:
    listed, has_alembic = connection.execute(text(TABLES)).one()
    return listed, has_alembic


def _adopt(connection: Connection) -> DatabaseSchema:
    """Make the list of revisions. A database that is older than the list gets the revisions it consists of."""
    # A run of release 0.1.0's `waybill migrate` may be under way.
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_OF_0_1_0})
    listed, has_alembic = _tables(connection)
    if not listed:
        found = frozenset(connection.scalars(text(ALEMBIC))) if has_alembic else frozenset()
        refuse_incompatible(DatabaseSchema({}, found))
        connection.execute(text(_LIST))
        if RELEASE_0_1_0 in found:
            _record(connection, with_all_before([INITIAL]))
        elif ours := with_all_before(found):
            # Before 0.2.0 was released, branches were in Alembic's table. Release 0.1.0 refused such a database.
            _record(connection, ours)
            connection.execute(text("DELETE FROM alembic_version"))
            if INITIAL in {one.name for one in ours}:
                connection.execute(text(_ADMIT_0_1_0), {"release": RELEASE_0_1_0})
    return applied_schema((name, branch, oldest) for name, branch, oldest in connection.execute(text(APPLIED)))
