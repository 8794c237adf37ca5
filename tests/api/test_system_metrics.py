"""What the API shows of the whole system, and what it shows when the database is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine import one_job, some_jobs, start_worker, take
from waybill.config import ApiSettings
from waybill.db import Database
from waybill.janitor import history
from waybill.janitor.models import TaskOutcome
from waybill.telemetry import metrics
from waybill.telemetry.instruments import Counter, Gauge
from waybill_api.system_metrics import SystemMetrics
from waybill_engine import enqueued_elsewhere
from waybill_engine.breaker_control import trip
from waybill_engine.caps import set_cap
from waybill_engine.samples import take_if_due


@pytest.fixture(autouse=True)
def _from_zero() -> Iterator[None]:
    yield
    for metric in metrics.CATALOGUE:
        metric.reset()


def shown(metric: Gauge | Counter) -> dict[tuple[str, ...], float]:
    return {labels: one.value for labels, one in metric.series()}


async def test_the_sample_the_janitor_and_the_disk_are_shown_and_stay_when_the_database_goes(
    db: Database, tmp_path: Path, database_url: str
) -> None:
    settings = ApiSettings.model_validate({"database_url": database_url, "storage_url": str(tmp_path)})
    figures = SystemMetrics(settings, db)
    await figures.refresh()
    assert shown(metrics.SAMPLE_AGE) == shown(metrics.JANITOR_LAST_RUN) == {}, "there is nothing yet"
    async with db.hot() as connection:
        await some_jobs(connection, 3)
        await take(connection, await start_worker(connection), 1)
        await connection.execute("UPDATE jobs SET run_at = now() - interval '100 s' WHERE state = 'queued'")
        dead = await one_job(connection)
        await connection.execute("UPDATE jobs SET state = 'dead_letter', finished_at = now() WHERE id = $1", dead)
        await trip(connection, "gateway", "maintenance")
        await set_cap(connection, 1, kind="work")
        assert await take_if_due(connection, 15.0)
        run = await history.begin(connection, "me")
        await history.begin_task(connection, run, "results")
        await history.note(connection, run, "results", done={"expired": 7}, found={}, added={"expired": 7})
        await history.end_task(connection, run, "results", TaskOutcome.DONE)
        await history.end(connection, run, TaskOutcome.DONE)
        await enqueued_elsewhere.add(connection, "work", enqueued_elsewhere.BY_COMMAND)

    await figures.refresh()

    jobs = shown(metrics.QUEUE_JOBS)
    assert (jobs["work", "queued"], jobs["work", "running"], jobs["work", "dead_letter"]) == (2, 1, 1)
    assert shown(metrics.QUEUE_OLDEST)[("work",)] >= 100
    assert shown(metrics.WORKERS) == {("active",): 1, ("draining",): 0, ("expired",): 0}
    assert shown(metrics.LIMIT_REACHED)["work", "cap"] == 1
    states = shown(metrics.BREAKER_STATE)
    assert (states["gateway", "open"], states["gateway", "closed"], states["gateway", "half_open"]) == (1, 0, 0)
    assert shown(metrics.JOBS_ENQUEUED_ELSEWHERE) == {("work", "command"): 1}
    assert shown(metrics.JANITOR_DONE) == {("results.expired",): 7}
    assert shown(metrics.JANITOR_LAST_SUCCESS)[()] >= shown(metrics.JANITOR_LAST_RUN)[()] > 1.7e9
    assert shown(metrics.JANITOR_RUN)[()] >= 0
    assert 0 < shown(metrics.STORAGE_FREE)[()] < shown(metrics.STORAGE_SIZE)[()]

    before = shown(metrics.SAMPLE_AGE)[()]
    gone = SystemMetrics(settings, Database(type(db.url)("postgresql://nobody@127.0.0.1:9/x"), patience=0.5))
    with pytest.raises(Exception, match="cannot be reached"):
        await gone.refresh()
    assert shown(metrics.QUEUE_JOBS) == jobs
    assert shown(metrics.SAMPLE_AGE)[()] > before
