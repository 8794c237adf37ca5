"""Isolation: suspects of a crash run alone, in a process of their own.

The process runs one suspect at a time. If it dies, we know at once which job did it, and no other job was hurt. A few
such processes are enough for the whole fleet.
"""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Callable

import structlog

from waybill.db import Database
from waybill.ids import new_id
from waybill_engine.lease import WorkerInfo, register_isolating
from waybill_engine.rescue import rescue_worker
from waybill_engine.worker.child_processes import start_child
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.observation import Observation

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Isolation:
    def __init__(
        self,
        program: str,
        db: Database,
        health: DatabaseHealth,
        info: Callable[[uuid.UUID], WorkerInfo],
        ttl: float,
        observation: Observation | None = None,
    ) -> None:
        """`info` describes the process that will have a given id."""
        self._observation = observation
        self._program = program
        self._info = info
        self._ttl = ttl
        self._db = db
        self._health = health
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start a process that runs suspects until none is left, unless others do that already."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Ask the process to stop. It releases the job that it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        worker_id = new_id()
        if not await self._health.persist(lambda: self._reserve(worker_id)):
            return
        arguments = self._observation.arguments_for_isolated() if self._observation is not None else []
        try:
            self._process = await start_child(self._program, worker_id, "--isolating", *arguments)
        except OSError as error:
            log.error("cannot_isolate", error=str(error))
            await self._health.persist(lambda: self._rescue(worker_id))
            return
        log.info("isolating_suspects", pid=self._process.pid)
        code = await self._process.wait()
        if self._observation is not None:
            self._observation.isolated_ended()
        if code != 0:
            log.warning("isolated_process_died", code=code)
            await self._health.persist(lambda: self._rescue(worker_id))

    async def _reserve(self, worker_id: uuid.UUID) -> bool:
        async with self._db.hot() as connection:
            return await register_isolating(connection, self._info(worker_id), self._ttl)

    async def _rescue(self, worker_id: uuid.UUID) -> None:
        async with self._db.hot() as connection:
            for one in await rescue_worker(connection, worker_id):
                log.warning("rescued", job_id=str(one.id), verdict=one.event, worker=one.worker)
