"""One run: alone, bounded, written down; the same plan when it is only looked at."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.clock import Clock
from support.janitor import DAY, Janitor, document, stored_keys
from support.otlp import collector
from support.pgbouncer import installed, pgbouncer
from support.traced import traced
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import LeaseLost
from waybill.failures import classify
from waybill.janitor import history
from waybill.janitor.models import TaskOutcome
from waybill.janitor.task import Batch, Tally
from waybill.storage import LocalStorage
from waybill_janitor.lease import TTL, JanitorLease, holder


class Slow:
    """A task with more to do than there is time."""

    name = "slow"
    items = "things"

    def __init__(self, batches: int = 1_000_000) -> None:
        self._batches = batches
        self.steal: Any = None

    async def plan(self) -> AsyncIterator[Batch]:
        for _ in range(self._batches):
            await asyncio.sleep(0)
            yield Batch([1])

    async def do(self, batch: Batch) -> Tally:
        if self.steal is not None:
            await self.steal()
        return Tally(Counter(things=1), {"left": 7.0})


class Bad(Slow):
    name = "bad"

    async def do(self, batch: Batch) -> Tally:
        raise OSError("no")


async def test_only_one_at_a_time_until_its_lease_runs_out(db: Database, clock: Clock) -> None:
    first = await JanitorLease.take(db)
    assert first is not None
    assert await JanitorLease.take(db) is None
    assert str(os.getpid()) in (await holder(db) or "")
    await clock.forward(TTL - 1)
    async with db.hot() as connection:
        await first.renew(connection)
    await clock.forward(TTL - 1)
    assert await JanitorLease.take(db) is None
    await clock.forward(2)
    second = await JanitorLease.take(db)
    assert second is not None
    async with db.hot() as connection:
        with pytest.raises(LeaseLost):
            await first.renew(connection)
    await first.release(db)
    assert await JanitorLease.take(db) is None, "who lost it cannot release it"
    await second.release(db)
    assert await JanitorLease.take(db) is not None


async def test_who_loses_the_lease_stops_with_the_next_batch(cleaner: Janitor, hot: Connection) -> None:
    task = Slow()

    async def steal() -> None:
        await hot.execute("UPDATE janitor_lease SET token = token + 1")

    task.steal = steal
    with pytest.raises(LeaseLost):
        await cleaner.run([task])
    await hot.execute("UPDATE janitor_lease SET expires_at = now()")
    await cleaner.run([])
    runs, _ = await history.runs(hot)
    assert [run.outcome for run in runs] == [TaskOutcome.DONE, TaskOutcome.DIED]
    assert [task.outcome for task in runs[1].tasks] == [TaskOutcome.DIED]


async def test_a_task_that_runs_out_of_time_or_fails_keeps_nobody_from_theirs(
    cleaner: Janitor, hot: Connection
) -> None:
    reports = await cleaner.run([Bad(3), Slow(3)], limit=60)
    assert [report.outcome for report in reports.values()] == [TaskOutcome.FAILED, TaskOutcome.DONE]
    reports = await cleaner.run([Slow()], limit=0.2)
    assert reports["slow"].outcome is TaskOutcome.UNFINISHED
    did = reports["slow"].done["things"]
    runs, _ = await history.runs(hot)
    assert [run.outcome for run in runs] == [TaskOutcome.UNFINISHED, TaskOutcome.FAILED]
    assert {task.task: task.error for task in runs[1].tasks} == {
        "bad": classify(OSError("no")).message,
        "slow": None,
    }
    figures = await history.figures(hot)
    assert figures.totals == {("slow", "things"): 3 + runs[0].tasks[0].done["things"]}
    assert runs[0].tasks[0].done["things"] in (did, did - 1), "what was cut off in the middle may not be counted"
    assert figures.found == {("slow", "left"): 7.0}
    assert figures.outcomes == {"bad": TaskOutcome.FAILED, "slow": TaskOutcome.UNFINISHED}
    assert figures.outcome is TaskOutcome.UNFINISHED


async def test_a_dry_run_plans_the_same_and_changes_nothing(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    for state in ("succeeded", "failed", "queued"):
        await document(hot, storage, state, unpublished=True)
    await clock.forward(40 * DAY)
    before = await stored_keys(storage)
    assert await cleaner.would() == {"documents": 2, "results": 1, "shelf": 2, "orphans": 2}
    assert await cleaner.would() == {"documents": 2, "results": 1, "shelf": 2, "orphans": 2}
    assert await stored_keys(storage) == before
    assert await hot.fetchval("SELECT count(*) FROM janitor_runs") == 0
    assert await hot.fetchval("SELECT count(*) FROM janitor_places") == 0
    done = await cleaner.clean()
    assert (done["documents"]["documents"], done["results"]["expired"], done["orphans"]["orphans"]) == (2, 1, 2)


async def run_module(url: str, folder: Path, *flags: str, **settings: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "waybill_janitor",
        *flags,
        env={**os.environ, "WAYBILL_DATABASE_URL": url, "WAYBILL_STORAGE_URL": str(folder), **settings},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_the_program_says_a_line_per_task_and_exits_accordingly(
    database_url: str, db: Database, hot: Connection, storage: LocalStorage, tmp_path: Path, clock: Clock
) -> None:
    folder = tmp_path / "storage"
    await document(hot, storage)
    await clock.forward(40 * DAY)
    code, said = await run_module(database_url, folder)
    assert code == 0
    lines = dict(line.split(maxsplit=1) for line in said.splitlines())
    assert lines["documents"].startswith("1 documents, 4 bytes, ")
    assert lines["tombstones"].startswith("nothing to do, ")
    assert len(lines) == 26
    lease = await JanitorLease.take(db)
    assert lease is not None
    code, said = await run_module(database_url, folder)
    assert code == 0
    assert said.startswith("Another janitor is at work (")
    await lease.release(db)
    await storage.put("waybill-owner", b"somebody else")
    code, said = await run_module(database_url, folder, "--json", WAYBILL_JANITOR_SCAN_INTERVAL="0")
    assert code == 1
    tasks = {task["task"]: task for task in json.loads(said)["tasks"]}
    assert tasks["orphans"]["outcome"] == "failed"
    assert tasks["garbage"]["outcome"] == "done"


@pytest.mark.skipif(not installed(), reason="pgbouncer is not installed (Debian's package pgbouncer)")
async def test_it_works_behind_pgbouncer(
    database_url: str, hot: Connection, storage: LocalStorage, tmp_path: Path, clock: Clock
) -> None:
    await document(hot, storage)
    await clock.forward(100 * DAY)
    with pgbouncer(database_url) as pooled:
        code, said = await run_module(pooled, tmp_path / "storage", WAYBILL_DATABASE_PGBOUNCER="true")
    assert code == 0, said
    assert await stored_keys(storage) == set()
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 0


async def test_a_run_is_a_trace_with_a_span_for_each_task(cleaner: Janitor) -> None:
    with traced("janitor") as export:
        await cleaner.run([Slow(2), Bad(1)])
        run, *tasks = export()
    assert (run.name, run.parent_id) == ("janitor run", None)
    assert run.attributes["waybill.janitor.failed"] == ["bad"]
    slow, bad = tasks
    assert {slow.parent_id, bad.parent_id} == {run.span_id}
    assert (slow.name, slow.attributes["waybill.janitor.things"]) == ("janitor slow", 2)
    assert (bad.name, bad.attributes["error.type"]) == ("janitor bad", "IO_ERROR")


async def test_the_programs_last_spans_are_sent_before_it_ends(database_url: str, db: Database, tmp_path: Path) -> None:
    """It runs for less than the second after which spans are sent anyway."""
    with collector() as received:
        code, said = await run_module(database_url, tmp_path / "storage", WAYBILL_OTLP_ENDPOINT=received.endpoint)
        assert code == 0, said
        (run,) = received.named("janitor run")
        tasks = [span for span in received.spans if span.parent_id == run.span_id]
    assert len(tasks) == len(said.splitlines())
    assert run.service == "waybill-janitor"
