"""What a handler writes through its context is fenced: a stale run leaves no row behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from support.clock import Clock
from support.engine import NO_SETTLE, TTL, WORK, events, running_job, start_worker, state, take_isolated
from support.network import network
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import LeaseLost
from waybill.failures import is_database_outage
from waybill.storage import LocalStorage
from waybill_engine import NewJob, State, enqueue
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.context import JobContext, Tools
from waybill_engine.rescue import rescue
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.progress_writer import ProgressWriter

_EFFECT = sa.text("INSERT INTO public.effects (job_id, lease_token) VALUES (:id, :token)")


@asynccontextmanager
async def a_run(connection: Connection, url: str, folder: Path) -> AsyncIterator[JobContext]:
    db = await Database.connect(CommonSettings.model_validate({"database_url": url}))
    _, claimed = await running_job(connection)
    progress = ProgressWriter(db, DatabaseHealth())
    dependencies = Dependencies(db, DatabaseHealth(), BreakerPolicy())
    try:
        yield JobContext(claimed, Tools(db, LocalStorage(folder), Clients(), BlockingPool(1), progress, dependencies))
    finally:
        await db.close()


async def taken_over(connection: Connection, clock: Clock) -> None:
    await clock.forward(TTL + 1)
    await rescue(connection, settle_time=NO_SETTLE)
    assert await take_isolated(connection, await start_worker(connection))


@pytest.mark.parametrize("way", ["complete", "transaction"])
async def test_a_stale_runs_rows_and_next_jobs_are_not_committed(
    connection: Connection, database_url: str, clock: Clock, tmp_path: Path, way: str
) -> None:
    async with a_run(connection, database_url, tmp_path) as job:
        await taken_over(connection, clock)
        with pytest.raises(LeaseLost):
            async with getattr(job, way)() as session:
                await (await session.connection()).execute(_EFFECT, {"id": job.id, "token": job.claimed.token})
                await enqueue(session, NewJob(WORK, "acme"))

        assert not job.completed
        assert await state(connection, job.id) is State.RUNNING
        assert await connection.fetchval("SELECT count(*) FROM effects") == 0
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 1


async def test_a_commit_whose_answer_was_lost_is_known_to_have_happened(
    connection: Connection, database_url: str, tmp_path: Path
) -> None:
    async with network(database_url) as (between, url), a_run(connection, url, tmp_path) as job:
        between.lose_answer("COMMIT")
        async with job.complete() as session:
            await (await session.connection()).execute(_EFFECT, {"id": job.id, "token": job.claimed.token})

        assert between.lost == [b"COMMIT"]
        assert job.completed
        assert await events(connection, job.id) == ["succeeded"]
        assert await connection.fetchval("SELECT count(*) FROM effects") == 1


async def test_a_commit_that_never_arrived_is_known_not_to_have_happened(
    connection: Connection, database_url: str, tmp_path: Path
) -> None:
    async with network(database_url) as (between, url), a_run(connection, url, tmp_path) as job:
        between.lose_answer("SET state = 'succeeded'")  # the connection ends, and its transaction with it
        with pytest.raises(Exception) as caught:
            async with job.complete() as session:
                await (await session.connection()).execute(_EFFECT, {"id": job.id, "token": job.claimed.token})

        assert is_database_outage(caught.value)
        assert not job.completed
        assert await state(connection, job.id) is State.RUNNING
        assert await connection.fetchval("SELECT count(*) FROM effects") == 0
