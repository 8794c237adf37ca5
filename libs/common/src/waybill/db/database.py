"""One process's connection to Postgres.

There are two ways in. `hot()` lends an asyncpg connection for the engine's hand-written statements (claim,
heartbeat, finish): a small pool whose planner settings leave those statements only one plan. `transaction()` opens
an SQLModel session for ordinary reads and writes. `driver()` gets from the second to the first inside one
transaction, so that a handler's rows and its job's completion commit together.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Never, cast
from uuid import uuid4

import structlog
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.config import CommonSettings, DatabaseUrl
from waybill.db.commit_notes import NotingConnection
from waybill.db.hot_pool import MOST as MOST_HOT
from waybill.db.hot_pool import Connection as Connection
from waybill.db.hot_pool import HotPool, watched
from waybill.db.schema import check_schema, refuse_unfinished_restore
from waybill.db.servers import Servers
from waybill.db.session_settings import FRESH_PLANS, NOTHING_FORGOTTEN, ONE_PLAN, SET_LOCAL, names_and_values
from waybill.db.startup import refuse_hidden_pooler, wait_for_postgres
from waybill.db.writability import check_writable, refuse_read_only
from waybill.errors import DatabaseUnavailable
from waybill.failures import is_read_only
from waybill.telemetry.metrics import POOL_WAIT

log = structlog.get_logger()

Heard = Callable[[str, str], None]
"""Called with a channel and what was said on it."""

_PING_EVERY = 10.0
"""Seconds of silence after which a listener makes sure that there still is somebody to listen to."""

_WRITABLE_FOR = 1.0
"""Seconds for which a successful write stands for those that are asked for after it."""

_SAID_FOR = 10.0
"""Seconds for which a server that does not write is not reported again."""

_BORN = "born"


class Database:
    def __init__(
        self,
        url: DatabaseUrl,
        *,
        pool_size: int = 10,
        hot_size: int = MOST_HOT,
        pgbouncer: bool = False,
        name: str = "waybill",
        patience: float | None = None,
    ) -> None:
        """`hot_size` is the most connections for hot statements; one of them is kept for urgent ones.

        With `patience`, seconds after which a connection that is still in use counts as dead and is ended."""
        self.url = url
        self.pgbouncer = pgbouncer
        self._name = name
        self._pool_size = pool_size
        self._patience = patience
        self._servers = Servers(url, patience=min(10.0, patience or 10.0))
        self._hot = HotPool(
            self._servers,
            size=hot_size,
            pgbouncer=pgbouncer,
            patience=patience,
            unreachable=self._unreachable,
            on_read_only=self._leave_server,
            server_settings=self._server_settings(**ONE_PLAN),
            **self._session_kind(),
        )
        self._engine: AsyncEngine | None = None
        self._expired_at = 0.0
        self._writable_until = 0.0
        self._write_lock = asyncio.Lock()

    @classmethod
    async def connect(
        cls,
        settings: CommonSettings,
        *,
        name: str = "waybill",
        schema: bool = True,
        patience: float | None = None,
        pool_size: int | None = None,
        hot_size: int = MOST_HOT,
    ) -> Database:
        """Wait for Postgres, saying so, then refuse a schema that is not ours."""
        database = cls(
            settings.database_url,
            pool_size=pool_size or settings.database_pool_size,
            hot_size=hot_size,
            pgbouncer=settings.database_pgbouncer,
            name=name,
            patience=patience,
        )
        try:
            await wait_for_postgres(database.greet, database.url, settings.database_connect_timeout)
            async with database.hot() as connection:
                await refuse_unfinished_restore(connection)
            if schema:
                await database.check_schema()
        except BaseException:
            await database.close()
            raise
        return database

    async def close(self) -> None:
        await self._hot.close()
        if self._engine is not None:
            await self._engine.dispose()
            self._engine = None

    # The engine's way in

    def _session_kind(self) -> dict[str, Any]:
        """Connect to a server that writes, and to none that has become a standby. A URL may ask for something else.

        Behind a pooler this is for the pooler to decide: we cannot see to which server it connects us.
        """
        if self.pgbouncer or self.url.names_session_kind:
            return {}
        return {"target_session_attrs": "read-write"}

    def _server_settings(self, **more: str) -> dict[str, str]:
        # A pooler refuses settings it does not know; there they go into each transaction.
        return {"application_name": self._name} | ({} if self.pgbouncer else NOTHING_FORGOTTEN | more)

    async def open_connection(self, purpose: str = "") -> Connection:
        """A connection of one's own, outside the pool: for LISTEN, which must never sit in a transaction.

        Its purpose is shown by Postgres after the name of the process.
        """
        settings = self._server_settings()
        settings["application_name"] = f"{self._name} {purpose}".rstrip()
        return await self._servers.connect(server_settings=settings, **self._session_kind())

    async def listen(self, channels: Iterable[str], heard: Heard, *, ready: Callable[[], None]) -> Never:
        """Hear notifications until the connection ends, which is an outage. `ready` is called once they are heard.

        The connection is asked now and then whether somebody is still at its other end: a dead network says nothing.
        """
        connection = await self.open_connection()
        ended = asyncio.Event()
        try:
            connection.add_termination_listener(lambda *_: ended.set())
            for channel in channels:
                await connection.add_listener(channel, lambda _c, _p, where, payload: heard(where, str(payload)))
            ready()
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PING_EVERY):
                        await ended.wait()
                    break
                async with asyncio.timeout(3):
                    await refuse_read_only(connection)
            raise DatabaseUnavailable("the connection that listens has ended")
        finally:
            connection.terminate()

    def hot(self, *, urgent: bool = False) -> AbstractAsyncContextManager[Connection]:
        """A connection for one hot statement, or a few in a transaction.

        An urgent one does not wait for others: statements that wait for a lock may have all connections but one.
        """
        return self._hot.lend(urgent=urgent)

    async def give_up_hot(self) -> None:
        """End all connections for hot statements, used or idle: the network was gone, and they may be dead silently."""
        await self._hot.give_up()

    async def _leave_server(self) -> None:
        """Use no connection again that is open now: their server does not write any more, and another one does."""
        now = time.monotonic()
        if now > self._expired_at + _SAID_FOR:
            log.warning("database_is_read_only", at=self.url.shown)
        self._expired_at = now
        self._writable_until = 0.0
        await self._hot.expire()

    def _unreachable(self, error: BaseException) -> DatabaseUnavailable:
        why = str(error) or type(error).__name__
        return DatabaseUnavailable(f"Postgres at {self.url.shown} cannot be reached: {why}")

    # Everybody's way in

    @property
    def engine(self) -> AsyncEngine:
        if self._engine is None:
            arguments: dict[str, Any] = {
                "async_creator_fn": self._servers.connect,  # both pools understand the URL the same way
                "server_settings": self._server_settings(**FRESH_PLANS),
                "connection_class": NotingConnection,
                **self._session_kind(),
            }
            if self.pgbouncer:
                arguments |= {
                    "statement_cache_size": 0,
                    "prepared_statement_cache_size": 0,
                    "prepared_statement_name_func": lambda: f"waybill_{uuid4().hex}",
                }
            self._engine = create_async_engine(
                "postgresql+asyncpg://",
                pool_size=self._pool_size,
                max_overflow=0,
                pool_timeout=30,
                pool_pre_ping=not self.pgbouncer,
                connect_args=arguments,
            )
            event.listen(self._engine.sync_engine, "connect", _note_birth)
            event.listen(self._engine.sync_engine, "checkout", self._refuse_expired)
        return self._engine

    def _refuse_expired(self, _connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
        if record.info[_BORN] <= self._expired_at:
            raise DisconnectionError("its server does not write any more")  # the pool opens another one

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A session whose work commits when the block ends well, and is rolled back when it does not."""
        async with AsyncSession(self.engine, expire_on_commit=False) as session, session.begin():
            asked = time.perf_counter()
            try:
                async with asyncio.timeout(self._patience):
                    connection = await session.connection()
                POOL_WAIT.observe(time.perf_counter() - asked)
            except (OSError, TimeoutError) as error:
                raise self._unreachable(error) from error
            try:
                with watched(await _raw(connection), self._patience):
                    if self.pgbouncer:
                        await (await driver(session)).execute(SET_LOCAL, *names_and_values(NOTHING_FORGOTTEN))
                    yield session
            except Exception as error:
                if is_read_only(error):
                    await self._leave_server()
                raise

    # Health

    def pool_use(self) -> dict[tuple[str, ...], float]:
        """How many connections of each pool are used, idle, and not opened yet. Another thread may ask."""
        found: dict[tuple[str, ...], float] = {("hot", state): count for state, count in self._hot.use.items()}
        if self._engine is not None:
            pool: Any = self._engine.sync_engine.pool
            used, idle = pool.checkedout(), pool.checkedin()
            free = max(self._pool_size - used - idle, 0)
            found |= {("sessions", "used"): used, ("sessions", "idle"): idle, ("sessions", "free"): free}
        return found

    async def check(self) -> None:
        """Raise unless Postgres answers."""
        async with self.hot() as connection:
            await connection.fetchval("SELECT 1", timeout=5)

    async def greet(self) -> None:
        """Raise unless Postgres answers, and not a pooler that nobody told us of."""
        async with self.hot() as connection:
            await connection.fetchval("SELECT 1", timeout=5)
            if not self.pgbouncer:
                await refuse_hidden_pooler(connection, self.url, ONE_PLAN)

    async def check_writable(self) -> None:
        """Raise unless Postgres can write. However often it is asked, it writes once a second at most."""
        async with self._write_lock:
            if time.monotonic() >= self._writable_until:
                async with self.hot() as connection:
                    await check_writable(connection)
                self._writable_until = time.monotonic() + _WRITABLE_FOR

    async def check_schema(self) -> None:
        """Raise SchemaMismatch unless this program can run on the schema."""
        async with self.hot() as connection:
            await check_schema(connection)


async def driver(session: AsyncSession) -> Connection:
    """The asyncpg connection under a session, with the session's transaction open on it."""
    connection = await session.connection()
    # SQLAlchemy sends BEGIN with its first statement; going below it before that would autocommit.
    await connection.exec_driver_sql("SELECT 1")
    return await _raw(connection)


def _note_birth(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info[_BORN] = time.monotonic()


async def _raw(connection: AsyncConnection) -> Connection:
    return cast("Connection", (await connection.get_raw_connection()).driver_connection)
