"""The pool of connections for the engine's hand-written statements (claim, heartbeat, finish).

It is small, its planner settings leave those statements only one plan, and no statement waits for ever: a connection
that is in use for too long counts as dead and is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import asyncpg

from waybill.db.commit_notes import NotingConnection
from waybill.db.servers import Servers
from waybill.db.session_settings import NOTHING_FORGOTTEN, ONE_PLAN, SET_LOCAL, names_and_values
from waybill.errors import DatabaseUnavailable
from waybill.telemetry.metrics import POOL_WAIT

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
    Pool = asyncpg.Pool[asyncpg.Record]
else:
    Connection, Pool = asyncpg.Connection, asyncpg.Pool

MOST = 11
"""The most connections for hot statements, unless a process asks for fewer. They are opened when they are needed."""

_LETTING_GO = 1.0
"""Seconds that calling off a statement may take."""

_WATCH_STEPS = 10
"""In how many steps the time is counted for which a connection may be in use."""


class _HotConnection(NotingConnection):
    def get_reset_query(self) -> str:
        # The engine leaves nothing behind on a connection; the default reset is a round trip per statement.
        return ""


class HotPool:
    def __init__(
        self,
        servers: Servers,
        *,
        size: int,
        pgbouncer: bool,
        patience: float | None,
        unreachable: Callable[[BaseException], DatabaseUnavailable],
        on_read_only: Callable[[], Awaitable[None]],
        **arguments: Any,
    ) -> None:
        """`size` is the most connections; one of them is kept for urgent statements.

        `arguments` are those of each connection. `on_read_only` is called when a server refuses to write.
        """
        self._servers = servers
        self._size = max(size, 2)
        self._pgbouncer = pgbouncer
        self._patience = patience
        self._unreachable = unreachable
        self._on_read_only = on_read_only
        self._arguments = arguments
        self._places = asyncio.Semaphore(self._size - 1)
        self._lent: set[Connection] = set()
        self._pool: Pool | None = None
        self._pool_lock = asyncio.Lock()

    async def close(self) -> None:
        if self._pool is not None:
            try:
                await asyncio.wait_for(self._pool.close(), 5)
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._pool.terminate()
            self._pool = None

    async def expire(self) -> None:
        """Use no connection again that is open now."""
        if self._pool is not None:
            await self._pool.expire_connections()

    async def give_up(self) -> None:
        """End all connections, used or idle: the network was gone, and they may be dead silently."""
        await self.expire()
        for connection in list(self._lent):
            connection.terminate()

    @asynccontextmanager
    async def lend(self, *, urgent: bool = False) -> AsyncIterator[Connection]:
        """A connection for one hot statement, or a few in a transaction.

        An urgent one does not wait for others: statements that wait for a lock may have all connections but one.
        """
        asked = time.perf_counter()
        if urgent:
            async with self._lend(asked) as connection:
                yield connection
            return
        if self._places.locked():
            try:
                async with asyncio.timeout(self._patience or 30):
                    await self._places.acquire()
            except TimeoutError as error:
                raise self._unreachable(error) from error
        else:
            await self._places.acquire()
        try:
            async with self._lend(asked) as connection:
                yield connection
        finally:
            self._places.release()

    @property
    def use(self) -> dict[str, int]:
        """How many of its connections are used, idle, and not opened yet. Another thread may ask."""
        pool, used = self._pool, len(self._lent)
        idle = max(pool.get_size() - used, 0) if pool is not None else 0
        return {"used": used, "idle": idle, "free": max(self._size - used - idle, 0)}

    @asynccontextmanager
    async def _lend(self, asked: float) -> AsyncIterator[Connection]:
        try:
            if self._pool is None:
                async with self._pool_lock:
                    if self._pool is None:  # nobody was faster
                        self._pool = await self._create_pool()
            pool = self._pool
            # Not the pool's own timeout: that makes a task of every acquisition, which a single job waits for.
            async with asyncio.timeout(self._patience or 30):
                connection = cast("Connection", await pool.acquire())
        except (OSError, TimeoutError) as error:
            raise self._unreachable(error) from error
        POOL_WAIT.observe(time.perf_counter() - asked)
        self._lent.add(connection)
        try:
            with watched(connection, self._patience):
                if not self._pgbouncer:
                    yield connection
                    return
                # Behind a transaction pooler parse and execute may reach different servers unless one transaction
                # holds them together, and session settings would leak to strangers.
                async with connection.transaction():
                    await connection.execute(SET_LOCAL, *names_and_values(ONE_PLAN | NOTHING_FORGOTTEN))
                    yield connection
        except TimeoutError:
            # Perhaps nobody is at the other end any more; the others are as old, and as likely to be dead.
            await pool.expire_connections()
            connection.terminate()
            raise
        except asyncpg.ReadOnlySQLTransactionError:
            await self._on_read_only()
            raise
        except AttributeError as error:
            # A connection that is ended between two steps of a statement leaves asyncpg without its protocol, and
            # asyncpg calls it all the same.
            if connection.is_closed():
                raise self._unreachable(error) from error
            raise
        finally:
            # Who is cancelled in the midst of a statement has the server call it off; one that does not answer that
            # either has its connection ended, so that the pool gets its place back.
            self._lent.discard(connection)
            with contextlib.suppress(TimeoutError):
                await pool.release(cast("Any", connection), timeout=_LETTING_GO)

    async def _create_pool(self) -> Pool:
        return await asyncpg.create_pool(
            connect=self._servers.connect,
            min_size=0,
            max_size=self._size,
            command_timeout=60,
            statement_cache_size=0 if self._pgbouncer else 100,
            connection_class=_HotConnection,
            **self._arguments,
        )


class _Watch:
    """Ends a connection after so many seconds, counted in steps.

    A step that comes late counts once: while this process itself stood still, it was not the server that took so long,
    and its answer may be waiting to be read.
    """

    def __init__(self, connection: Connection, patience: float) -> None:
        self._connection = connection
        self._step = patience / _WATCH_STEPS
        self._left = _WATCH_STEPS
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(self._step, self._look)

    def stop(self) -> None:
        self._next.cancel()

    def _look(self) -> None:
        self._left -= 1
        if self._left:
            self._next = self._loop.call_later(self._step, self._look)
        else:
            self._connection.terminate()


@contextlib.contextmanager
def watched(connection: Connection, patience: float | None) -> Iterator[None]:
    """Ends a connection that is in use for too long: whoever waits for it then hears of an outage.

    Not a time limit on the caller: after that one it would wait again, for the rollback.
    """
    if patience is None:
        yield
        return
    watch = _Watch(connection, patience)
    try:
        yield
    finally:
        watch.stop()
