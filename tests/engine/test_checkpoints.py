"""What a run leaves behind is there for the next one, whatever ended it, and only the job's owner can write it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlmodel.ext.asyncio.session import AsyncSession

from support.engine import WORK, Connect, failure, find_contradictions, row, running_job, start_worker, take
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill.errors import LeaseLost, Refused
from waybill.storage import LocalStorage
from waybill_engine import ClaimedJob, JobContext, JobKind, NewJob, RetryPolicy, State, handles, registry
from waybill_engine.checkpoints import MAX_CHECKPOINT, load, save
from waybill_engine.control import cancel, retry
from waybill_engine.finish import judge, released, settle
from waybill_engine.rescue import rescue_worker
from waybill_engine.testing import make_due, run_inline

PAGE = Path(__file__).parents[2] / "docs" / "handlers.md"


async def leave(connection: Connection, claimed: ClaimedJob, state: Mapping[str, Any] | None) -> None:
    await save(connection, claimed.worker_id, claimed.id, claimed.token, state)


async def test_it_survives_a_retry_a_release_a_rescue_and_a_persons_retry(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    assert await load(hot, claimed.id) is None
    left = {"row": 5000, "name": "Åsa", "more": [None, {"x": 1.5}]}
    await leave(hot, claimed, left)

    await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(), WORK.retry))])
    assert await load(hot, claimed.id) == left
    await make_due(hot)
    (claimed,) = await take(hot, worker)
    await settle(hot, worker.id, [(claimed.id, claimed.token, released("a deploy"))])
    assert await load(hot, claimed.id) == left
    await take(hot, worker)
    await rescue_worker(hot, worker.id)
    assert await load(hot, claimed.id) == left
    await cancel(hot, claimed.id)
    await retry(hot, claimed.id)
    assert await load(hot, claimed.id) == left
    assert await find_contradictions(hot) == []


async def test_the_latest_counts_and_none_removes_it(hot: Connection) -> None:
    _, claimed = await running_job(hot)
    for state in ({"row": 1}, {"row": 2}, {}, None):
        await leave(hot, claimed, state)
        assert await load(hot, claimed.id) == state


async def test_a_run_that_lost_its_job_leaves_nothing(hot: Connection) -> None:
    worker, stale = await running_job(hot)
    await leave(hot, stale, {"row": 1})
    await rescue_worker(hot, worker.id)
    with pytest.raises(LeaseLost):
        await leave(hot, stale, {"row": 2})
    await hot.execute("UPDATE jobs SET isolate = false")
    (fresh,) = await take(hot, await start_worker(hot))
    with pytest.raises(LeaseLost):
        await leave(hot, stale, {"row": 3})
    assert await load(hot, fresh.id) == {"row": 1}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"x": "x" * MAX_CHECKPOINT}, "checkpoint must be at most 16384 bytes"),
        ({"x": object()}, "checkpoint must be JSON"),
        ({"x": float("nan")}, "checkpoint must be JSON"),
        ({"x": "\0"}, "must not have NUL"),
    ],
    ids=["too big", "no JSON", "no number", "NUL"],
)
async def test_what_cannot_be_stored_is_refused_and_breaks_nothing(
    hot: Connection, wrong: dict[str, Any], why: str
) -> None:
    _, claimed = await running_job(hot)
    async with hot.transaction():
        with pytest.raises(Refused, match=why):
            await leave(hot, claimed, wrong)
        assert await hot.fetchval("SELECT 1") == 1, "the caller's transaction is still good"


# In a handler

IMPORT_ROWS = JobKind("checkpoint_import", retry=RetryPolicy(retries=3, base=0, jitter=0))


@pytest.fixture
async def look(connect: Connect) -> Connection:
    connection = await connect()
    await connection.execute("CREATE TABLE public.imported (first int, last int)")
    return connection


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture(autouse=True)
def _no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(registry, "_kinds", {})


async def ranges(connection: Connection) -> list[tuple[int, int]]:
    return [tuple(one) for one in await connection.fetch("SELECT first, last FROM imported ORDER BY first")]


async def test_the_import_of_the_handbook_goes_on_where_it_failed_and_writes_nothing_twice(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    pattern = r"^```python\n(@handles\(IMPORT_ROWS\)\n.*?)^```$"
    (block,) = re.findall(pattern, PAGE.read_text(), re.MULTILINE | re.DOTALL)
    failing_at = {3000}

    async def write_rows(session: AsyncSession, first: int, last: int) -> None:
        await (await driver(session)).execute("INSERT INTO public.imported VALUES ($1, $2)", first, last)
        if first in failing_at:
            failing_at.clear()
            raise OSError("the disk is full")

    known = {"handles": handles, "IMPORT_ROWS": IMPORT_ROWS, "JobContext": JobContext, "Any": Any}
    exec(block, {**known, "write_rows": write_rows})  # noqa: S102

    first = await run_inline(db, storage, NewJob(IMPORT_ROWS, "acme", {"rows": 5000}))
    assert first.state is State.SCHEDULED
    assert await ranges(look) == [(0, 1000), (1000, 2000), (2000, 3000)]
    assert await load(look, first.id) == {"row": 3000}
    await make_due(look)
    assert (await run_inline(db, storage, first.id)).state is State.SUCCEEDED
    assert await ranges(look) == [(start, start + 1000) for start in range(0, 5000, 1000)]


async def test_a_checkpoint_of_its_own_is_committed_at_once(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    seen: list[tuple[uuid.UUID, object]] = []

    @handles(IMPORT_ROWS)
    async def import_rows(payload: dict[str, Any], job: JobContext) -> None:
        seen.append((job.id, await job.last_checkpoint()))
        await job.checkpoint({"attempt": job.attempt})
        seen.append((job.id, await load(look, job.id)))
        raise OSError("no luck")

    outcome = await run_inline(db, storage, NewJob(IMPORT_ROWS, "acme"))
    await make_due(look)
    await run_inline(db, storage, outcome.id)
    assert [state for _, state in seen] == [None, {"attempt": 1}, {"attempt": 1}, {"attempt": 2}]
    assert (await row(look, outcome.id))["state"] == "scheduled"
