"""This process as the database knows it: who it is, what it serves, and whether it still works."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from waybill import __version__
from waybill.db import Database
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill_engine import breaker, lease
from waybill_engine.caps import cap_by_default
from waybill_engine.kind_limits import record_limits
from waybill_engine.rates import rate_by_default
from waybill_engine.registry import Handler
from waybill_engine.settings import WorkerSettings
from waybill_engine.worker.database_health import DatabaseHealth


class Registration:
    def __init__(
        self,
        settings: WorkerSettings,
        db: Database,
        health: DatabaseHealth,
        handlers: Mapping[str, Handler],
        *,
        worker_id: uuid.UUID | None,
        isolating: bool,
    ) -> None:
        self._db = db
        self._health = health
        self._lease_ttl = settings.lease_ttl
        self._served = [handlers[name].kind for name in sorted(handlers)]
        # Asked once: they may read settings, and a bad one should stop the process before it has begun.
        self._default_caps = {kind.name: kind.default_cap() for kind in self._served if kind.default_cap}
        self._default_rates = {kind.name: kind.default_rate() for kind in self._served if kind.default_rate}
        self.dependencies = {kind.name: kind.dependencies for kind in self._served}
        """What the jobs of each kind cannot do without."""
        self.info = lease.WorkerInfo(
            id=worker_id or new_id(),
            name=f"{settings.worker_pod_name or socket.gethostname()}:{os.getpid()}",
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            queues=settings.worker_queues or sorted({kind.queue for kind in self._served}),
            kinds=sorted(handlers),
            concurrency=1 if isolating else settings.worker_concurrency,
            isolating=isolating,
            hears=not db.pgbouncer,
            pod_namespace=settings.worker_pod_namespace,
            pod_name=settings.worker_pod_name,
            pod_uid=settings.worker_pod_uid,
            node_started_at=datetime.now(UTC),
        )
        self.id = self.info.id
        """The id that was written last, under which this process works."""

    def take_new_id(self) -> None:
        """Use another id from the next `write` on."""
        self.info = replace(self.info, id=new_id(), node_started_at=datetime.now(UTC))

    async def write(self, *, on_lease: Callable[[], None]) -> None:
        """Tell the database of this process and its kinds. `on_lease` is called just before its lease begins."""

        async def write() -> None:
            async with self._db.hot() as connection:
                await record_limits(connection, self._served)
                await breaker.register_kinds(connection, self.dependencies)  # before the first claim
                await breaker.forget_old_events(connection)
                for kind, most in self._default_caps.items():
                    await cap_by_default(connection, [kind], most)
                for kind, pace in self._default_rates.items():
                    await rate_by_default(connection, kind, pace)
                on_lease()
                await lease.register(connection, self.info, self._lease_ttl)

        await self._health.persist(write)
        self.id = self.info.id

    async def drain(self) -> None:
        """Say that this worker claims no more jobs."""
        await self._write(lease.drain)

    async def stop(self) -> None:
        """Say that this worker has stopped. What it still has is released."""
        await self._write(lease.stop)

    async def _write(self, what: Callable[[Connection, uuid.UUID], Awaitable[None]]) -> None:
        async def write() -> None:
            async with self._db.hot() as connection:
                await what(connection, self.id)

        await self._health.persist(write)
