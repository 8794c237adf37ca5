"""What a handler is given beside its payload: its job, fenced ways to write, and the means to work.

Everything that a handler writes through this object is fenced by job id, lease token and worker. A handler whose job
was taken over can go on computing, but it can no longer change a row or publish a file.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db import Database, driver
from waybill.errors import LeaseLost
from waybill.failures import is_database_outage
from waybill.storage import Storage, Stored
from waybill.telemetry import spans
from waybill_engine.artefacts import artefact_key, publish
from waybill_engine.checkpoints import load, save
from waybill_engine.claim import ClaimedJob
from waybill_engine.finish import succeed, succeeded_by
from waybill_engine.lease import fence

if TYPE_CHECKING:
    from waybill_engine.worker.clients import ClientFactory, Clients
    from waybill_engine.worker.dependencies import Dependencies, Probe
    from waybill_engine.worker.process_pool import BlockingPool
    from waybill_engine.worker.progress_writer import ProgressWriter

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Tools:
    """What all runs of a worker share."""

    db: Database
    storage: Storage
    clients: Clients
    pool: BlockingPool
    progress: ProgressWriter
    dependencies: Dependencies


class JobContext:
    __slots__ = ("_tools", "claimed", "completed", "probe", "used")

    log = log
    """Puts job_id, tenant and worker on every line, as every logger does while the handler runs."""

    def __init__(
        self, claimed: ClaimedJob, tools: Tools, probe: Probe | None = None, dependencies: Sequence[str] = ()
    ) -> None:
        self.claimed = claimed
        self.probe = probe
        """Reports to breakers whether dependencies work again, if this run is a probe."""
        self.used = dependencies
        """The dependencies of which the success of this run says that they work."""
        self.completed = False
        self._tools = tools

    @property
    def storage(self) -> Storage:
        return self._tools.storage

    @property
    def id(self) -> uuid.UUID:
        return self.claimed.id

    @property
    def tenant(self) -> str:
        """Who is billed for the job."""
        return self.claimed.tenant

    @property
    def owner(self) -> str:
        """Who may see the job."""
        return self.claimed.owner

    def log_fields(self) -> dict[str, str]:
        return {"job_id": str(self.claimed.id), "tenant": self.claimed.tenant, "worker": str(self.claimed.worker_id)}

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.claimed.attempts + 1

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Report how far the job is (0 to 1). It is cheap: only the latest report is written, a few times a second."""
        # Converted here, so that a wrong type fails the handler and not the writer.
        self._tools.progress.note(self.claimed, float(fraction), None if message is None else str(message))

    async def use(self, factory: ClientFactory[T]) -> T:
        """A client of another service, shared by all jobs of this worker process.

            @asynccontextmanager
            async def mail_server() -> AsyncIterator[MailServer]: ...

            server = await job.use(mail_server)

        The worker opens it when a job first asks for it and closes it when the worker stops. If it cannot be opened,
        the error is this job's, and the next job that asks tries again.
        """
        return await self._tools.clients.use(factory)

    async def run_blocking(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a blocking or CPU-heavy function in another process, which is killed when the job must stop.

        Function, arguments and result must be picklable.
        """
        with spans.span(f"run {function.__name__}"):
            return await self._tools.pool.run(function, *arguments)

    async def checkpoint(self, state: Mapping[str, Any] | None, session: AsyncSession | None = None) -> None:
        """Leave a small JSON object (16 KiB) for the job's next run, in case this one does not get to the end.

        With a session of `transaction()`, it commits together with what else you write there. None removes it.
        """
        if session is not None:
            await save(await driver(session), self.claimed.worker_id, self.claimed.id, self.claimed.token, state)
            return
        async with self._tools.db.hot() as connection:
            await save(connection, self.claimed.worker_id, self.claimed.id, self.claimed.token, state)

    async def last_checkpoint(self) -> dict[str, Any] | None:
        """What this run or an earlier one left with `checkpoint`; None if there is nothing."""
        async with self._tools.db.hot() as connection:
            return await load(connection, self.claimed.id)

    def used_only(self, *dependencies: str) -> None:
        """Say that this run used only some of its kind's dependencies: its success tells nothing about the others."""
        self.used = [name for name in self.used if name in dependencies]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A transaction before the end of the job, which commits only if the job is still this run's."""
        async with self._tools.db.transaction() as session:
            yield session
            # Last, so that the job's row is locked only for the moment of the commit.
            await fence(await driver(session), self.claimed.worker_id, self.claimed.id, self.claimed.token)

    @asynccontextmanager
    async def complete(self) -> AsyncIterator[AsyncSession]:
        """The end of the job: your rows, the jobs you enqueue and this job's success commit together, or not at all."""
        committing = False
        try:
            with spans.span("complete"):
                async with self._tools.db.transaction() as session:
                    yield session
                    connection = await driver(session)
                    committing = True
                    if not await succeed(connection, self.claimed.worker_id, [(self.claimed.id, self.claimed.token)]):
                        raise LeaseLost()
                    if self.probe is not None:
                        await self.probe.succeeded(connection, self.used)
        except Exception as error:
            # The connection broke during the commit, so the row has to tell whether it happened.
            if not (committing and is_database_outage(error) and await self._did_commit()):
                raise
        self.completed = True

    async def _did_commit(self) -> bool:
        while True:
            try:
                async with self._tools.db.hot() as connection, connection.transaction():
                    run = (self.claimed.id, self.claimed.token)
                    return bool(await succeeded_by(connection, self.claimed.worker_id, [run]))
            except Exception as error:
                if not is_database_outage(error):
                    raise
                await asyncio.sleep(0.5)

    async def store(self, name: str, data: bytes | AsyncIterable[bytes]) -> Stored:
        """Store a file under this run's own key. Only `publish` makes it a result."""
        key = artefact_key(self.claimed.id, self.claimed.token, self.claimed.worker_id, name)
        return await self.storage.put(key, data)

    async def publish(self, session: AsyncSession, name: str, stored: Stored, media_type: str) -> None:
        """Make a stored file the job's artefact `name`, in a transaction of `complete()` or `transaction()`."""
        claimed, connection = self.claimed, await driver(session)
        await publish(connection, claimed.worker_id, claimed.id, claimed.token, name, stored, media_type)
