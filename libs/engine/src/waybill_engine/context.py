"""What a handler is given beside its payload: its job, a fenced way to write, and the means to work.

Everything a handler writes through this object is fenced by (job id, lease token). A handler whose lease was lost can
go on computing, but it can no longer change a row or publish a file.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import structlog
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db import Database, driver
from waybill.errors import LeaseLost, is_database_outage
from waybill.storage import Storage, Stored
from waybill_engine import Lease, State
from waybill_engine.artefacts import artefact_key, publish
from waybill_engine.finish import stands_as, succeed
from waybill_engine.lease import fence

if TYPE_CHECKING:
    from waybill_convert.clients.gateway import Gateway
    from waybill_engine.worker.dependencies import Dependencies, Probe
    from waybill_engine.worker.process_pool import BlockingPool
    from waybill_engine.worker.progress_writer import ProgressWriter

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outside:
    """What handlers reach beyond the database."""

    storage: Storage
    gateway: Gateway


@dataclass(frozen=True, slots=True)
class Tools:
    """What all runs of a worker work with."""

    worker_id: uuid.UUID
    db: Database
    outside: Outside
    pool: BlockingPool
    progress: ProgressWriter
    dependencies: Dependencies


class JobContext:
    __slots__ = ("_tools", "completed", "lease", "probe")

    log = log
    """Carries job_id, tenant and worker on every line, as any logger does while the handler runs."""

    def __init__(self, lease: Lease, tools: Tools, probe: Probe | None = None) -> None:
        self.lease = lease
        self.probe = probe
        """What this run finds out for others, if its dependency's breaker is half open."""
        self.completed = False
        self._tools = tools

    @property
    def storage(self) -> Storage:
        return self._tools.outside.storage

    @property
    def gateway(self) -> Gateway:
        return self._tools.outside.gateway

    @property
    def id(self) -> uuid.UUID:
        return self.lease.id

    def log_fields(self) -> dict[str, str]:
        return {"job_id": str(self.lease.id), "tenant": self.lease.tenant, "worker": str(self._tools.worker_id)}

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.lease.attempts + 1

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Say how far the job is (0 to 1). Cheap: only the latest word is written, a few times a second."""
        # Converted here: a mistake in it is the handler's, not the writer's.
        self._tools.progress.note(self.lease, float(fraction), None if message is None else str(message))

    async def run_blocking(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a blocking or CPU-heavy function in another process, which is killed when the job must stop.

        Function, arguments and result must be picklable.
        """
        return await self._tools.pool.run(function, *arguments)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """Domain writes before the end, committed only while the lease is ours."""
        async with self._tools.db.transaction() as session:
            yield session
            # Last, so that the job's row is locked for the moment of the commit and no longer.
            await fence(await driver(session), self.lease.id, self.lease.token)

    @asynccontextmanager
    async def complete(self) -> AsyncIterator[AsyncSession]:
        """The end: domain writes, the jobs enqueued next and this job's completion commit together, or not at all."""
        committing = False
        try:
            async with self._tools.db.transaction() as session:
                yield session
                connection = await driver(session)
                committing = True
                if not await succeed(connection, self._tools.worker_id, [(self.lease.id, self.lease.token)]):
                    raise LeaseLost()
                if self.probe is not None:
                    await self.probe.succeeded(connection)
        except Exception as error:
            # The connection broke while we committed: the row knows whether we did.
            if not (committing and is_database_outage(error) and await self._did_commit()):
                raise
        self.completed = True

    async def _did_commit(self) -> bool:
        while True:
            try:
                async with self._tools.db.hot() as connection, connection.transaction():
                    found = await stands_as(connection, [self.lease.id])
                return found.get(self.lease.id) == (State.SUCCEEDED, self.lease.token)
            except Exception as error:
                if not is_database_outage(error):
                    raise
                await asyncio.sleep(0.5)

    async def store(self, name: str, data: bytes | AsyncIterable[bytes]) -> Stored:
        """Store a file under this run's own key. It is nothing yet: `publish` makes it a result."""
        return await self.storage.put(artefact_key(self.lease.id, self.lease.token, name), data)

    async def publish(self, session: AsyncSession, name: str, stored: Stored, media_type: str) -> None:
        """Make a stored file the job's artefact `name`, in a transaction of `complete()` or `transaction()`."""
        await publish(await driver(session), self.lease.id, self.lease.token, name, stored, media_type)
